//go:build !race

package sim_test

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/pages"
	"github.com/spillway-go/spillway/internal/sim"
	"github.com/spillway-go/spillway/limit"
)

// The race detector makes these tests ten times as slow. It finds nothing, because a run is one
// goroutine.

// reference returns the best share of each class that is answered in time without the law: by a
// service without a limit, or behind a semaphore of the right size.
func reference(t *testing.T, s sim.Scenario, slots int) []float64 {
	t.Helper()
	best := make([]float64, len(s.Classes))
	for _, p := range []sim.Policy{sim.Unlimited(), sim.Semaphore(slots)} {
		s.Policy = p
		r := run(t, s)
		for i := range best {
			best[i] = max(best[i], r.Classes[i].Served())
		}
	}
	return best
}

func kinds(shares ...any) (all []sim.Class) {
	for i := 0; i < len(shares); i += 4 {
		all = append(all, sim.Class{
			Name: fmt.Sprint(shares[i+1]), Share: shares[i].(float64), Deadline: shares[i+3].(time.Duration),
			Service: sim.LogNormal(shares[i+1].(time.Duration), shares[i+2].(float64)),
		})
	}
	return all
}

// In each of these cases the limiter once refused work that a service without a limit answers.
func TestMixedWorkBelowTheCapacityIsAnswered(t *testing.T) {
	lookups := kinds(.9, 20*ms, 1., sec, .1, 2*sec, 1., 10*sec)
	six := kinds(.4, ms, .3, 250*ms, .25, 5*ms, .3, 500*ms, .2, 20*ms, .3, sec, .1, 80*ms, .3, 2*sec, .04, 300*ms, .3, 5*sec, .01, 3*sec, .3, 20*sec)
	misses := []sim.Class{{Name: "hits and misses", Deadline: sec, Service: sim.Mixture(sim.Part{Share: .8, Service: sim.Fixed(300 * time.Microsecond)}, sim.Part{Share: .2, Service: sim.Exponential(50 * ms)})}}
	route := slices.Clone(misses) // one route with two deadlines and two lengths of work
	route[0].Kind, route[0].Share = "GET /orders", .7
	route = append(route, route[0])
	route[1].Deadline, route[1].Share = 10*sec, .3
	for name, c := range map[string]struct {
		slots   int
		load    float64
		classes []sim.Class
	}{
		"lookups beside reports":              {32, .4, lookups},
		"lookups beside reports, busy":        {32, .8, lookups},
		"six kinds of 1 ms to 3 s":            {40, .4, six},
		"six kinds of 1 ms to 3 s, busy":      {40, .8, six},
		"hits and misses of a cache, busy":    {20, .75, misses},
		"the same, of a route that is told":   {20, .75, route},
		"a cold start in front of slow calls": {1000, .02, []sim.Class{{Name: "call", Deadline: 5 * sec, Service: sim.LogNormal(sec, .3)}}},
	} {
		for _, b := range []sim.Backend{sim.NWay(c.slots), sim.Degrading(c.slots, .5)} {
			t.Run(fmt.Sprintf("%s/%v", name, b), func(t *testing.T) {
				t.Parallel()
				s := sim.Scenario{Seed: 1, Duration: 40 * sec, Classes: c.classes, Backend: b}
				s.Arrivals = sim.Poisson(c.load * s.Capacity())
				want := reference(t, s, c.slots)
				s.Policy = adaptive()
				r := run(t, s)
				for i := range want {
					if got := r.Classes[i].Served(); got < want[i]-.03 {
						t.Errorf("of %s, with a deadline of %v, %.3f are answered in time, without a limit %.3f", c.classes[i].Name, c.classes[i].Deadline, got, want[i])
					}
				}
			})
		}
	}
}

// The only slot is in use half of the time. A call takes two seconds and has a deadline of ten. Two
// faults once cost one call in ten each. Rates were measured over 1.5 s, in which two calls that
// came together looked like three times the capacity. And a single slot in use was a reason to
// admit a second call.
func TestOneSlotHalfInUseAnswersWhatASemaphoreDoes(t *testing.T) {
	for _, b := range []sim.Backend{sim.NWay(1), sim.Degrading(1, .5)} {
		got, want := 0.0, 0.0
		for seed := range uint64(6) {
			s := sim.Scenario{Seed: seed, Duration: 30 * time.Minute, Warmup: 5 * time.Minute, Backend: b, Arrivals: sim.Poisson(.25), Classes: kinds(1., 2*sec, .8, 10*sec)}
			want += reference(t, s, 1)[0]
			s.Policy = adaptive()
			got += run(t, s).Classes[0].Served()
		}
		t.Logf("%v: %.3f of what a semaphore of one answers", b, got/want)
		if got < .95*want {
			t.Errorf("%v: %.3f of what a semaphore of one answers", b, got/want)
		}
	}
}

// A service starts under overload, in front of ten slots that degrade. The law once cut the limit
// from 32 to 16 and 8, and could not measure the cost of the last cut. So it went back to 16 and to
// 32, although it had found a queue there. In seconds 3 to 8 the service answered 0.92 of the
// capacity.
func TestTheStartDoesNotGoBackToAQueue(t *testing.T) {
	for _, c := range []struct {
		slots             int
		load, mean, worst float64
	}{
		{10, 1.5, .93, .85},
		{10, 5, .94, .88},
		// The first cohort of samples came while the slots filled, and its latency was that of the
		// queue. The second cohort was no slower, so the law doubled the limit: the fourth worst of
		// sixty starts answered 0.44.
		{5, 5, .79, .68},
	} {
		var done []float64
		for seed := range uint64(60) {
			s := sim.Scenario{Seed: seed + 1, Warmup: 3 * sec, Duration: 8 * sec, Backend: sim.Degrading(c.slots, .5), Arrivals: sim.Poisson(c.load * 25 * float64(c.slots))}
			s.Classes = []sim.Class{{Share: .8}, {Share: .2, Priority: spillway.Critical}}
			for i := range s.Classes {
				s.Classes[i].Service, s.Classes[i].Deadline = sim.Uniform(20*ms, 60*ms), sec
			}
			s.Policy = adaptive()
			r := run(t, s)
			done = append(done, r.Total.Served()*c.load)
		}
		slices.Sort(done)
		mean := 0.
		for _, x := range done {
			mean += x / float64(len(done))
		}
		t.Logf("%d slots, load %.1f: %.3f of what can be done is answered in time, fourth worst %.3f", c.slots, c.load, mean, done[3])
		if mean < c.mean || done[3] < c.worst {
			t.Errorf("%d slots, load %.1f: %.3f of what can be done is answered in time, fourth worst %.3f", c.slots, c.load, mean, done[3])
		}
	}
}

// If no call may wait, or none has the time to wait, only the refusals show that one slot is too
// few. The backend has one slot for two minutes. The law once kept the limit of one for ever, and
// three in four calls were refused.
func TestALimitOfOneIsLeftThoughNobodyWaits(t *testing.T) {
	for name, c := range map[string]struct {
		queue int
		time  time.Duration
	}{"no queue": {-1, sec}, "no time to wait": {100, 30 * ms}} {
		s := sim.Scenario{Duration: 6 * time.Minute, Warmup: 4 * time.Minute, Backend: sim.NWay(20), Arrivals: sim.Poisson(200), Classes: kinds(1., 20*ms, .3, c.time)}
		s.Changes = []sim.Change{{At: ms, Slots: 1}, {At: 2 * time.Minute, Slots: 20}}
		s.Policy = sim.Limiter(func() limit.Law { return limit.NewAdaptive() }, sim.Settings{QueueSize: c.queue})
		if r := run(t, s); r.Classes[0].Served() < .9 {
			t.Errorf("%s: %.2f are answered in time", name, r.Classes[0].Served())
		}
	}
}

// Lookups and reports have the same deadline. Without a Kind they count as one kind, and the law
// predicts a mean of both for each waiting lookup.
func TestAToldKindIsNotHarmedByAnotherOfTheSameDeadline(t *testing.T) {
	served := func(lookup, report string) (answered float64) {
		const seeds = 4
		for seed := range uint64(seeds) {
			s := sim.Scenario{Seed: seed, Duration: 60 * sec, Backend: sim.NWay(8), Classes: kinds(.97, 5*ms, .3, 10*sec, .03, 2*sec, .3, 10*sec)}
			s.Classes[0].Kind, s.Classes[1].Kind = lookup, report
			s.Arrivals, s.Policy = sim.Poisson(.95*s.Capacity()), adaptive()
			answered += run(t, s).Classes[0].Served() / seeds
		}
		return answered
	}
	told, untold := served("GET /orders/{id}", "GET /reports"), served("", "")
	t.Logf("of lookups %.3f are answered in time, and %.3f where kinds are not told", told, untold)
	if told < untold+.02 {
		t.Errorf("of lookups %.3f are answered in time, and %.3f where kinds are not told", told, untold)
	}
}

// Every twenty seconds other routes become busy, with other lengths of work. The name of each busy
// route replaces a name that has become rare.
func TestKindsThatComeAndGoDoNoHarm(t *testing.T) {
	const phases, routes, slots = 3, 24, 20
	for _, seed := range []uint64{1, 2} {
		r := rand.New(rand.NewPCG(seed, 37))
		s := sim.Scenario{Seed: seed, Duration: phases * 20 * sec, Backend: sim.NWay(slots)}
		for i := range phases * routes {
			mean := time.Duration(float64(ms) * math.Pow(1000, r.Float64()))
			s.Classes = append(s.Classes, sim.Class{Name: fmt.Sprint(mean), Kind: fmt.Sprint("route ", i), Deadline: 50 * mean, Service: sim.LogNormal(mean, .3)})
		}
		var trace []sim.Request
		for at := time.Duration(0); at < s.Duration; {
			busy := int(at/(20*sec)) * routes
			each := sim.Scenario{Classes: s.Classes[busy : busy+routes], Backend: sim.NWay(1)}.Capacity()
			class := busy + r.IntN(routes)
			trace = append(trace, sim.Request{At: at, Class: class, Work: s.Classes[class].Service.Draw(r)})
			at += time.Duration(r.ExpFloat64() * 1e9 / (each * .7 * slots))
		}
		s.Arrivals = sim.Replay(trace)
		want := reference(t, s, slots)
		s.Policy = adaptive()
		rep := run(t, s)
		for i, c := range rep.Classes {
			if got := c.Served(); c.Calls() >= 50 && got < want[i]-.05 {
				t.Errorf("seed %d: of route %d, which takes %s, %.3f are answered in time, without a limit %.3f", seed, i, s.Classes[i].Name, got, want[i])
			}
		}
	}
}

var mixes = flag.Int("mixes", 60, "how many random mixes TestNoMixIsHarmed plays; 10,000 take some minutes")

// randomMix returns two to five kinds of work of 1 ms to 3 s, with deadlines of 8 to 250 times
// their length. The load is 0.2 to 0.8 of the capacity.
func randomMix(seed uint64) (s sim.Scenario, slots int) {
	r := rand.New(rand.NewPCG(seed, 29))
	between := func(low, high float64) float64 { return low * math.Pow(high/low, r.Float64()) }
	slots = int(between(4, 80))
	s = sim.Scenario{Seed: seed, Duration: 30 * sec, Backend: []sim.Backend{sim.NWay(slots), sim.Degrading(slots, .5)}[r.IntN(2)]}
	for range 2 + r.IntN(4) {
		mean := between(1e6, 3e9)
		s.Classes = append(s.Classes, sim.Class{
			Share: math.Sqrt(1e9/mean) * between(.3, 3), Priority: spillway.Priority(r.IntN(3)) - 1,
			Deadline: time.Duration(mean * between(8, 250)), Service: sim.LogNormal(time.Duration(mean), between(.2, 1)),
		})
	}
	s.Arrivals = sim.Poisson(between(.2, .8) * s.Capacity())
	return s, slots
}

// For any mix: if an unlimited service or a semaphore of the right size answers in time, so does a
// service with the adaptive limiter.
func TestNoMixIsHarmed(t *testing.T) {
	n := *mixes
	harmed, lost, offered := 0, 0.0, 0.0
	for seed := range uint64(n) {
		s, slots := randomMix(seed)
		want := reference(t, s, slots)
		s.Policy = adaptive()
		r := run(t, s)
		worst := 0.0
		for i, c := range r.Classes {
			if c.Calls() < 50 {
				continue
			}
			worst = max(worst, want[i]-c.Served())
			lost += max(want[i]-c.Served(), 0) * float64(c.Calls())
			offered += float64(c.Calls())
		}
		if worst > .03 {
			harmed++
			t.Logf("mix %d loses %.3f of a kind", seed, worst)
		}
	}
	t.Logf("%d of %d mixes harmed, %.4f of all work lost", harmed, n, lost/cmp.Or(offered, 1))
	if n == 60 {
		pages.Says(t, "docs/adr/0005-every-change-of-the-limit-is-a-trial.md",
			fmt.Sprintf("Of 60 random mixes at 0.2 to 0.8 of the capacity %d lose more than three points of a kind, and %.2f %% of all work is lost", harmed, 100*lost/offered))
	}
	if float64(harmed) > .1*float64(n) || lost > .01*offered {
		t.Errorf("%d of %d mixes harmed, %.4f of all work lost", harmed, n, lost/offered)
	}
}

// worse returns the longest time in which a service with the limiter answered clearly less, in
// windows of ten seconds, than without.
func worse(ours, without []sim.Point) (longest time.Duration) {
	const window = 10
	since, a, b := -1, 0, 0
	for i := range min(len(ours), len(without)) {
		a, b = a+ours[i].OK, b+without[i].OK
		if i >= window {
			a, b = a-ours[i-window].OK, b-without[i-window].OK
		}
		if float64(a) >= .9*float64(b)-3*math.Sqrt(float64(b)) {
			since = -1
			continue
		}
		if since < 0 {
			since = i
		}
		longest = max(longest, time.Duration(i-since+1)*sec)
	}
	return longest
}

// The limiter leaves any state in which a service answers less than without a limit: below and
// above the capacity, and after half a minute of another load.
func TestNoStateInWhichLessIsAnsweredLasts(t *testing.T) {
	n := *mixes / 2
	lasted := 0
	for seed := range uint64(n) {
		s, slots := randomMix(seed + 1_000_000)
		r := rand.New(rand.NewPCG(seed, 4))
		s.Duration, s.Record.Interval = 90*sec, sec
		usual, before := math.Exp(r.Float64()*2-1)*s.Capacity(), math.Exp(r.Float64()*4-2)*s.Capacity()
		s.Arrivals = sim.Steps(sim.Step{Rate: before}, sim.Step{From: 30 * sec, Rate: usual})
		s.Policy = sim.Unlimited()
		without := run(t, s).Timeline
		s.Policy = adaptive()
		if d := worse(run(t, s).Timeline, without); d > 10*sec {
			lasted++
			t.Logf("mix %d, %d slots: for %v", seed, slots, d)
		}
	}
	t.Logf("in %d of %d mixes it lasts longer than ten seconds", lasted, n)
	if float64(lasted) > 2+.15*float64(n) { // measured: 23 of 200 mixes, and 6 of the first 30
		t.Errorf("in %d of %d mixes it lasts longer than ten seconds", lasted, n)
	}
}

// For minutes, more than twice the right number of slots were once in use, because the samples of
// lookups did not count.
func TestLookupsTellThatReportsAreTooMany(t *testing.T) {
	const slots = 32
	var done, could float64
	for seed := range uint64(6) {
		s := sim.Scenario{Seed: seed, Duration: 90 * sec, Warmup: 30 * sec, Backend: sim.Degrading(slots, .5), Classes: kinds(.9, 20*ms, 1., sec, .1, 2*sec, 1., 10*sec)}
		s.Arrivals = sim.Poisson(1.5 * s.Capacity())
		work := func(p sim.Policy) (seconds float64) {
			s.Policy = p
			r := run(t, s)
			return .02*float64(r.Classes[0].OK) + 2*float64(r.Classes[1].OK)
		}
		done += work(adaptive())
		could += work(sim.Limiter(func() limit.Law { return limit.NewFixed(slots) }, sim.Settings{}))
		t.Logf("seed %d: %.2f", seed, done/could)
	}
	if done < .9*could {
		t.Errorf("%.2f of the work that %d slots do is done", done/could, slots)
	}
}

// A few reports once used nearly all of the time, and all of them were late. The lookups were
// answered, so by count almost nothing was lost, and the law left the limit unchanged.
func TestFewLongCallsAreNotStarvedByManyShort(t *testing.T) {
	for seed := range uint64(3) {
		s := sim.Scenario{Seed: seed, Duration: 150 * sec, Warmup: 20 * sec, Backend: sim.Degrading(10, 0.01), Classes: []sim.Class{
			{Name: "lookup", Kind: "lookup", Share: 40, Deadline: 5 * sec, Service: sim.LogNormal(5*ms, .3)},
			{Name: "report", Kind: "report", Share: 7.5, Deadline: 5 * sec, Service: sim.LogNormal(2*sec, .3)},
		}}
		s.Arrivals = sim.Poisson(47.5)
		s.Policy = adaptive()
		if r := run(t, s); r.Classes[0].Served() < .6 || r.Classes[1].Served() < .25 {
			t.Errorf("seed %d: of lookups %.2f are answered, of reports %.2f", seed, r.Classes[0].Served(), r.Classes[1].Served())
		}
	}
}
