package sim_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/sim"
	"github.com/spillway-go/spillway/limit"
)

// The law is tested in randomly drawn worlds, which are disturbed for a while. Two properties must
// hold in each world:
//
//   - once the disturbance is over, the law is within 10 % of the best goodput within
//     20 s. The best is what an oracle reaches, or the gate with the right fixed limit
//     if that is less: if half of the callers leave, the others wait behind them in
//     the gate;
//   - if it never ends, the law still leaves any state in which most work is lost.
//
// To run more worlds, or others:
//
//	go test ./internal/sim -run "Calm|Stable" -args -worlds 100000 -world0 1
var (
	worlds = flag.Int("worlds", len(sim.Few(make([]bool, 8)...)), "surroundings: how many random worlds")
	world0 = flag.Uint64("world0", 1, "surroundings: the first")
)

// world is one scenario with a disturbance.
type world struct {
	sc         sim.Scenario
	slots      int
	floor, cap int // bounds on the law's limit during the disturbance; 0: none
	from, to   time.Duration
	says       string
}

// settles is how long a law may take once the disturbance is over.
const settles = 20 * sec

// bounded is the adaptive law under temporary bounds.
type bounded struct {
	adaptiveLaw
	w   *world
	now time.Duration
}

func (s *bounded) Limit() int {
	n := s.adaptiveLaw.Limit()
	if s.now < s.w.from || s.now >= s.w.to {
		return n
	}
	n = max(n, s.w.floor)
	if s.w.cap > 0 {
		n = min(n, s.w.cap)
	}
	return n
}

func (s *bounded) Admit(at time.Duration, load limit.Load) {
	s.now = at
	s.adaptiveLaw.Admit(at, load)
}

func (s *bounded) Observe(e limit.Sample, load limit.Load) {
	s.now = e.End
	s.adaptiveLaw.Observe(e, load)
}

// drawWorld draws a world. If lasting is set, the disturbance lasts until the end.
func drawWorld(seed uint64, lasting bool) *world {
	r := rand.New(rand.NewPCG(seed, 77))
	one := func(n int) bool { return r.IntN(n) == 0 }
	between := func(a, b float64) float64 { return a + (b-a)*r.Float64() }
	pick := func(n ...int) int { return n[r.IntN(len(n))] }

	w := &world{slots: pick(2, 4, 10, 20, 40, 100)}
	mean := time.Duration(between(5, 60) * float64(ms))
	if w.slots >= 40 {
		mean *= 2
	}
	deadline := max(200*ms, time.Duration(between(6, 30)*float64(mean)))
	w.from = time.Duration(between(3, 15) * float64(sec))
	w.to = w.from + time.Duration(between(2, 15)*float64(sec))
	sc := &w.sc
	sc.Seed = seed
	sc.Duration = w.to + settles + 15*sec
	if lasting {
		w.to = sc.Duration
		sc.Warmup = sc.Duration - 15*sec
	} else {
		sc.Warmup = w.to + settles
	}
	if one(2) {
		sc.Backend = sim.NWay(w.slots)
	} else {
		sc.Backend = sim.Degrading(w.slots, 0.5)
	}
	stay := sim.Class{Name: "stay", Share: 1, Deadline: deadline, Service: sim.LogNormal(mean, between(0.1, 0.5))}
	sc.Classes = []sim.Class{stay}
	w.says = fmt.Sprintf("%v slots of %v, deadline %v, disturbed from %v to %v:", w.slots, mean.Round(ms), deadline.Round(ms), w.from.Round(ms), w.to.Round(ms))
	add := func(format string, a ...any) { w.says += " " + fmt.Sprintf(format, a...) }

	usual, then := between(0.5, 2.5), between(0.8, 2.5)
	during := usual
	// One to three disturbances at once.
	for range 1 + r.IntN(3) {
		switch r.IntN(6) {
		case 0: // the backend loses capacity
			left := max(1, int(float64(w.slots)*between(0.04, 0.6)))
			sc.Changes = append(sc.Changes, sim.Change{At: w.from, Slots: left}, sim.Change{At: w.to, Slots: w.slots})
			add("%d slots are left,", left)
		case 1: // or becomes slower
			speed := between(0.15, 0.8)
			sc.Changes = append(sc.Changes, sim.Change{At: w.from, Speed: speed}, sim.Change{At: w.to, Speed: 1})
			add("speed %.2f,", speed)
		case 2:
			w.floor = max(1, int(float64(w.slots)*between(0.1, 0.6)))
			add("floor %d,", w.floor)
		case 3:
			w.cap = max(1, int(float64(w.slots)*between(0.05, 0.8)))
			add("cap %d,", w.cap)
		case 4:
			during = between(0.02, 0.3)
			add("load %.2f,", during)
		case 5:
			leaves := stay
			leaves.Name, leaves.Share = "leaves", between(0.1, 1.2)
			leaves.LeaveAfter = sim.Uniform(0, time.Duration(between(0.5, 3)*float64(mean)))
			sc.Classes = append(sc.Classes, leaves)
			add("%.0f %% leave,", 100*leaves.Share/(1+leaves.Share))
		}
		if len(sc.Classes) > 1 && one(2) {
			break
		}
	}
	if lasting { // the law cannot correct a bound that an operator keeps
		w.floor, w.cap = 0, 0
	}
	if w.cap > 0 && w.floor > w.cap {
		w.floor = 0
	}
	if one(4) {
		for i := range sc.Classes {
			sc.Classes[i].ErrorRate, sc.Classes[i].FastErrors = 0.05, one(2)
		}
		add("5 %% errors,")
	}
	add("load %.2f, then %.2f", usual, then)
	capacity := sc.Capacity()
	from, to := w.from, w.to
	sc.Arrivals = sim.Varying(3*capacity, func(t time.Duration) float64 {
		switch {
		case t < from:
			return usual * capacity
		case t < to:
			return during * capacity
		}
		return then * capacity
	})
	return w
}

// play returns the goodput of the callers that stay, relative to the better of two oracles: behind
// the law, and behind a fixed limit that was right at the start.
func (w *world) play(t *testing.T, state *string) (ours, fixed float64) {
	best, err := yardstick(w.sc)
	if err != nil {
		t.Fatal(err)
	}
	goodput := func(law func() limit.Law) float64 {
		sc := w.sc
		sc.Policy = sim.Limiter(law, sim.Settings{})
		r := run(t, sc)
		return r.Class("stay").Goodput / max(best.Class("stay").Goodput, 1)
	}
	var law *bounded
	ours = goodput(func() limit.Law { law = &bounded{adaptiveLaw: limit.NewAdaptive().(adaptiveLaw), w: w}; return law })
	*state = fmt.Sprintf("limit %d: %s", law.adaptiveLaw.Limit(), law.State())
	return ours, goodput(func() limit.Law { return limit.NewFixed(w.slots) })
}

// inWorlds plays random worlds, two at a time.
func inWorlds(t *testing.T, lasting bool, judge func(ours, fixed float64) string) {
	var mu sync.Mutex
	bad := 0
	var wg sync.WaitGroup
	next := make(chan uint64)
	for range 2 {
		wg.Go(func() {
			for seed := range next {
				w := drawWorld(seed, lasting)
				var state string
				ours, fixed := w.play(t, &state)
				if wrong := judge(ours, fixed); wrong != "" {
					mu.Lock()
					if bad++; bad <= 20 {
						t.Errorf("world %d: %s\n\t%s\n\t%s", seed, wrong, w.says, state)
					}
					mu.Unlock()
				}
			}
		})
	}
	for i := range *worlds {
		next <- *world0 + uint64(i)
	}
	close(next)
	wg.Wait()
	if bad > 0 {
		t.Errorf("%d of %d worlds", bad, *worlds)
	}
}

func TestOnceItsSurroundingsAreCalmTheLawIsRight(t *testing.T) { inWorlds(t, false, rightWhenCalm) }

func rightWhenCalm(ours, fixed float64) string {
	if ours < 0.9*min(fixed, 1) {
		return fmt.Sprintf("goodput %.3f of the best, a fixed limit %.3f", ours, fixed)
	}
	return ""
}

// In each of these worlds the law was once wrong after the disturbance.
func TestWorldsThatOnceWereWrong(t *testing.T) {
	const stale = "the limit was right, but the gate went by how long work took while slots were missing"
	type wrong struct {
		seed uint64
		was  string
	}
	for _, once := range sim.Few([]wrong{
		{200071, "a raise was kept because the backend became fast again meanwhile, and the next cut was a minute away"},
		{100156, stale}, {101077, stale}, {101140, stale},
	}...) {
		t.Run(fmt.Sprint(once.seed), func(t *testing.T) {
			t.Parallel()
			w := drawWorld(once.seed, false)
			var state string
			ours, fixed := w.play(t, &state)
			if wrong := rightWhenCalm(ours, fixed); wrong != "" {
				t.Errorf("%s; once %s\n\t%s\n\t%s", wrong, once.was, w.says, state)
			}
		})
	}
}

func TestNoStateInWhichMostIsLostIsStable(t *testing.T) {
	inWorlds(t, true, func(ours, fixed float64) string {
		if ours < 0.5 {
			return fmt.Sprintf("goodput %.3f of the best to the end, a fixed limit %.3f", ours, fixed)
		}
		return ""
	})
}
