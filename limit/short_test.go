package limit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// flips is a machine whose processors are shared with others: all work takes 1.8 times as long for
// some tenths of a second, again and again, as measured in front of a Redis.
func flips(seed uint64) func(now time.Duration) float64 {
	r := rand.New(rand.NewPCG(seed, 3))
	slow, next := false, time.Duration(0)
	return func(now time.Duration) float64 {
		for next <= now {
			slow, next = !slow, next+time.Duration(r.ExpFloat64()*float64(200*time.Millisecond))
		}
		if slow {
			return 1.8
		}
		return 1
	}
}

// A Redis script takes a millisecond, and the network about as long again. Eight requests in flight
// finish clearly more work than two. The limit once stayed at two or three: whenever the machine
// became faster during a cut, the cut seemed to have helped.
func TestShortWorkKeepsItsThroughput(t *testing.T) {
	for _, quiet := range []bool{true, false} {
		done := func(law Law, seed uint64) float64 {
			m := newModel(law, 1, 1050*time.Microsecond)
			m.rand = rand.New(rand.NewPCG(seed, 1))
			m.outside = func(r *rand.Rand) time.Duration { // mean 2 ms, standard deviation 4 ms
				return time.Duration(float64(2*time.Millisecond) * math.Exp(1.27*r.NormFloat64()-1.27*1.27/2))
			}
			if !quiet {
				m.slowness = flips(seed)
			}
			m.run(4 * time.Second)
			before := m.done
			m.run(16 * time.Second)
			return float64(m.done - before)
		}
		ours, best := 0., 0.
		for seed := range uint64(16) {
			ours += done(newAdaptive(forLatency), seed)
			best += done(newFixed(8), seed)
		}
		t.Logf("quiet %v: %.3f of what eight at once do", quiet, ours/best)
		lowest := 0.93
		if quiet {
			lowest = 0.97
		}
		if ours < lowest*best {
			t.Errorf("quiet %v: %.3f of what eight at once do, want %v", quiet, ours/best, lowest)
		}
	}
}

// Short work still gets a limit if its backend degrades: throughput then falls with a raise.
func TestShortWorkThatDegradesIsHeldBack(t *testing.T) {
	for share, want := range map[float64]trialResult{0.9: independent, 1.2: follows, 1.5: follows} {
		rising := math.Log(1.25)
		raise := trial{from: 8, to: 10, ranBefore: 8, before: mean{0, 500}, ranAfter: mean{10, 500}, after: mean{share * rising, 500}, cohorts: 2, short: true}
		if v, _ := raise.judge(forLatency.criteriaOf(&raise), 0.01, &pace{}, 0.4); v != want {
			t.Errorf("a raise, latency rose by %v of it: %v, want %v", share, v, want)
		}
		cut := trial{from: 10, to: 8, ranBefore: 10, before: mean{share * rising, 500}, ranAfter: mean{8, 500}, after: mean{0, 500}, cohorts: 3, short: true}
		if v, _ := cut.judge(forLatency.criteriaOf(&cut), 0.01, &pace{}, 0.4); v != want {
			t.Errorf("a cut, latency fell by %v of it: %v, want %v", share, v, want)
		}
	}
}

// Near the bound of short work, readings of one trial may differ. The first reading above the bound
// ends the test by throughput alone for the rest of the trial.
func TestATrialIsShortOnlyWhileAllReadingsAre(t *testing.T) {
	raise := trial{from: 8, to: 10, ranBefore: 8, short: true}
	for i, c := range []struct{ short, want bool }{{true, true}, {false, false}, {true, false}} {
		raise.enter(reading{n: 10, inFlight: 10}, c.short)
		if got := forLatency.criteriaOf(&raise).share == throughputAlone; got != c.want {
			t.Errorf("reading %d: throughput alone decides: %v, want %v", i+1, got, c.want)
		}
	}
}

// The cost of one more slot is too small to measure. The limit in front of five slots of 0.1 ms once
// rose until work took 6 ms.
func TestShortWorkDoesNotRaiseTheLimitWithoutEnd(t *testing.T) {
	for seed := range uint64(4) {
		law := newAdaptive(forLatency)
		m := newModel(law, 5, 100*time.Microsecond)
		m.rand = rand.New(rand.NewPCG(seed, 1))
		m.run(5 * time.Second)
		if limit := m.middle(5 * time.Second); limit > 2*firstLimit {
			t.Errorf("seed %d: a limit of %d in front of 5 slots", seed, limit)
		}
	}
}
