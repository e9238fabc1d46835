package gate

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/priority"
	"github.com/spillway-go/spillway/limit"
)

// worthOf computes, from the times themselves, the worth of work that may run for r, and the
// share that r cuts.
func worthOf(times []float64, r float64) (worth, cut float64) {
	held, done := 0.0, 0.0
	for _, t := range times {
		held += min(t, r)
		if t <= r {
			done++
		}
	}
	return done / held, 1 - done/float64(len(times))
}

func bestOf(times []float64) (best float64) {
	for i := 1; i < ages; i++ {
		if w, cut := worthOf(times, edge(i)); cut <= mostEnded {
			best = max(best, w)
		}
	}
	return best
}

var works = map[string]struct {
	draw  func(r *rand.Rand) float64 // ms
	heavy bool
}{
	"lognormal, sigma 1.2": {func(r *rand.Rand) float64 { return math.Exp(3.6 + 1.2*r.NormFloat64()) }, true},
	"lognormal, sigma 1.6": {func(r *rand.Rand) float64 { return math.Exp(3 + 1.6*r.NormFloat64()) }, true},
	"one in twenty hangs":  {func(r *rand.Rand) float64 { return 10 + 990*float64(r.IntN(20)/19) }, true},
	"exponential":          {func(r *rand.Rand) float64 { return 75 * r.ExpFloat64() }, false},
	"uniform":              {func(r *rand.Rand) float64 { return 50 + 50*r.Float64() }, false},
	"always the same":      {func(*rand.Rand) float64 { return 20 }, false},
	"half come from a cache": {func(r *rand.Rand) float64 {
		return 1 + 100*float64(r.IntN(2))*(0.75+r.Float64()/2)
	}, false},
}

func TestTheLifeTableFindsWhatTheTimesThemselvesSay(t *testing.T) {
	for name, w := range works {
		for _, censored := range []bool{false, true} {
			r := rand.New(rand.NewPCG(1, 2))
			var l life
			var times []float64
			for range 20 * lifeMemory {
				elapsed := w.draw(r) * 1e6
				times = append(times, elapsed)
				if most := (300 + 700*r.Float64()) * 1e6; censored && elapsed > most {
					l.end(most, limit.Deadline, true)
				} else {
					l.end(elapsed, limit.Success, true)
				}
				if l.n == 50 {
					l.fold()
				}
			}
			best := bestOf(times)
			if math.IsInf(l.longestUseful, 1) == w.heavy {
				t.Errorf("%s, censored %v: enough is %v", name, censored, time.Duration(l.longestUseful))
			}
			if !w.heavy {
				continue
			}
			for what, at := range map[string]float64{"enough": l.longestUseful, "least": l.shortestUseful} {
				got, cut := worthOf(times, at)
				t.Logf("%s, censored %v: %s %v, %.3f of the best, cuts %.2f", name, censored, what, time.Duration(at), got/best, cut)
				if got < (worthMuch-0.05)*best || cut > mostEnded+0.03 {
					t.Errorf("%s, censored %v: %s is %v: %.3f of the best, and cuts %.2f", name, censored, what, time.Duration(at), got/best, cut)
				}
			}
			if more, _ := worthOf(times, 2*l.longestUseful); more > (worthMuch+0.03)*best {
				t.Errorf("%s, censored %v: twice enough is %.3f of the best", name, censored, more/best)
			}
		}
	}
}

// The table keeps its record of old ages while all work is cut young.
func TestTheLifeTableKeepsWhatItCannotSee(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	draw := works["lognormal, sigma 1.2"].draw
	var l life
	for range 5000 {
		l.end(draw(r)*1e6, limit.Success, true)
	}
	l.fold()
	before := l.longestUseful
	for range 200 {
		for range 50 {
			if elapsed := draw(r) * 1e6; elapsed < before {
				l.end(elapsed, limit.Success, true)
			} else {
				l.end(before, limit.Deadline, true)
			}
		}
		l.fold()
	}
	if l.longestUseful < before/2 || l.longestUseful > 2*before {
		t.Errorf("enough was %v and is %v", time.Duration(before), time.Duration(l.longestUseful))
	}
}

func TestAgesAreInOrderAndHoldTheirEdges(t *testing.T) {
	for i := 1; i < ages; i++ {
		if edge(i) <= edge(i-1) || age(edge(i)) != i || age(edge(i)*0.999) != i-1 {
			t.Fatalf("age %d begins at %v", i, edge(i))
		}
	}
	for _, x := range []float64{0, 1, 1e18, math.MaxInt64} {
		if i := age(x); i < 0 || i >= ages {
			t.Errorf("age of %v is %d", x, i)
		}
	}
}

// Work that runs on after its deadline saves no slot time by starting late. Work
// without a deadline never ends early.
func TestOnlyDeadlinesThatEndWorkLetItWait(t *testing.T) {
	for _, late := range []time.Duration{0, 100 * time.Millisecond} {
		r := rand.New(rand.NewPCG(5, 6))
		g := New(Config{Law: limit.NewFixed(1), QueueSize: 1 << 20, MaxWait: time.Hour})
		now := time.Duration(0)
		for range 2000 { // twice as many as can be served
			elapsed := time.Duration(works["lognormal, sigma 1.2"].draw(r) * 1e6)
			d := g.Arrive(now, Arrival{Cost: 1, Deadline: Never}, nil)
			if d.Action != Admit {
				t.Fatalf("%+v", d)
			}
			g.Arrive(now, Arrival{Cost: 1, Deadline: Never}, nil)
			w, o := Grant{Seq: g.seq, Start: now, Deadline: now + 300*time.Millisecond, Cost: 1}, limit.Success
			now += elapsed
			if elapsed > 300*time.Millisecond {
				now, o = w.Deadline+late, limit.Deadline
			}
			g.End(now, w, o)
		}
		short := g.bound(priority.Level(spillway.Low), Never)
		long := g.bound(priority.Level(spillway.Low), time.Second)
		if short > 6e8 {
			t.Fatalf("without a deadline the queue stands for %v", time.Duration(short))
		}
		if late == 0 && long < 6.5e8 || late > 0 && long != short {
			t.Errorf("work that ends %v after its deadline may wait %v of a second", late, time.Duration(long))
		}
		if got, most := g.bound(0, time.Second), g.longestWait(time.Second); got != most {
			t.Errorf("the most important work, of which there is none, may wait %v, want %v", time.Duration(got), time.Duration(most))
		}
	}
}

// Callers that leave after a time of their own, with all their long work, used to be left
// out of the life table, and lowered the quantiles.
func TestCallersThatLeaveDoNotMakeWorkShorter(t *testing.T) {
	alone, among := New(Config{Law: limit.NewFixed(1)}), New(Config{Law: limit.NewFixed(1)})
	alone.life, among.life = &life{}, &life{}
	r := rand.New(rand.NewPCG(7, 8))
	now := time.Duration(0)
	end := func(g *Gate, elapsed time.Duration, o limit.Outcome) {
		g.Arrive(now, Arrival{Cost: 1, Deadline: Never}, nil)
		g.End(now+elapsed, Grant{Seq: g.seq, Start: now, Cost: 1, Deadline: Never}, o)
	}
	var highs [2]float64
	for range 20 * lifeMemory {
		elapsed := time.Duration(works["lognormal, sigma 1.2"].draw(r) * 1e6)
		end(alone, elapsed, limit.Success)
		if leaves := time.Duration(100 * r.Float64() * 1e6); r.IntN(2) == 0 && leaves < elapsed {
			end(among, leaves, limit.Canceled)
		} else {
			end(among, elapsed, limit.Success)
		}
		now += 10 * time.Millisecond
		highs[0], highs[1] = highs[0]+alone.service.kinds.list[0].high, highs[1]+among.service.kinds.list[0].high
	}
	alone.life.fold()
	among.life.fold()
	for what, v := range map[string][2]float64{"enough": {alone.life.longestUseful, among.life.longestUseful}, "high": highs} {
		if v[1] < 0.8*v[0] || v[1] > 1.25*v[0] {
			t.Errorf("%s is %.2f of what it is without callers that leave", what, v[1]/v[0])
		}
	}
	for range 200 {
		end(among, time.Millisecond, limit.Failed)
		end(among, time.Millisecond, limit.Canceled)
	}
	if n, failed := among.WithoutSample(); n != 200 || !failed {
		t.Errorf("200 of 200 that did not leave have failed: %d, %v", n, failed)
	}
}

// A table of work that took ten times as long used to fade only at ages that work reached again.
// After a bad spell some work was allowed to wait for seconds, and work was dropped if it could not
// finish by an outdated age.
func TestTheLifeTableForgetsOtherWork(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	learn := func(l *life, n int, draw func() float64) {
		for range n {
			l.end(draw()*1e6, limit.Success, true)
			if l.n == 50 {
				l.fold()
			}
		}
	}
	plain := func() float64 { return 15 + 10*r.Float64() }
	heavy := func() float64 { return 10 * works["lognormal, sigma 1.2"].draw(r) }
	var l life
	learn(&l, 5000, plain)
	learn(&l, 1000, heavy)
	if math.IsInf(l.longestUseful, 1) {
		t.Errorf("of heavy work after plain work there is never enough time")
	}
	learn(&l, 2*lifeEnds, plain)
	if !math.IsInf(l.longestUseful, 1) {
		t.Errorf("enough is %v, %d ends after the work became plain again", time.Duration(l.longestUseful), 2*lifeEnds)
	}
}

// Neither chance nor deadlines that end work may look like a change to other work.
func TestTheLifeTableKeepsTheSameWork(t *testing.T) {
	for name, w := range works {
		r := rand.New(rand.NewPCG(11, 12))
		var l life
		forgot, looked := 0, 0
		for range 150 {
			cut := math.Inf(1)
			if r.IntN(2) == 0 && l.longestUseful > 0 {
				cut = l.longestUseful // at times a deadline ends all longer work
			}
			for range lifeEnds {
				if elapsed := w.draw(r) * 1e6; elapsed > cut {
					l.end(cut, limit.Deadline, true)
				} else {
					l.end(elapsed, limit.Success, true)
				}
			}
			before := l.risk[0]
			l.fold()
			looked++
			if l.risk[0] < before/2 {
				forgot++
			}
		}
		if forgot > 1 {
			t.Errorf("%s: forgotten %d times of %d", name, forgot, looked)
		}
	}
}
