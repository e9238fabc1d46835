package limit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// twin measures a cohort the slow way: each censored time passes its weight to the longer times in
// equal parts. The longest time keeps its weight.
func twin(exact, atLeast []float64) (level float64) {
	type entry struct {
		log, weight float64
		cut         bool
	}
	var all []entry
	for _, x := range exact {
		all = append(all, entry{x, 1, false})
	}
	for _, x := range atLeast {
		all = append(all, entry{x, 1, true})
	}
	slices.SortStableFunc(all, func(a, b entry) int {
		switch {
		case a.log < b.log || a.log == b.log && !a.cut && b.cut:
			return -1
		case a.log > b.log || a.log == b.log && a.cut && !b.cut:
			return 1
		}
		return 0
	})
	longest := 0.0
	for _, e := range all {
		if e.cut {
			longest = e.log
		}
	}
	for i := range all {
		if e := &all[i]; e.cut {
			if i == len(all)-1 {
				continue
			}
			share := e.weight / float64(len(all)-1-i)
			e.weight = 0
			for j := i + 1; j < len(all); j++ {
				all[j].weight += share
			}
		}
	}
	sum, mass, total := 0.0, 0.0, float64(len(all))
	for _, e := range all {
		if e.cut || e.weight == 0 || mass >= judged*total-1e-9 {
			continue
		}
		sum += e.weight * e.log
		mass += e.weight
	}
	if rest := judged*total - mass; rest > 1e-9*total {
		sum, mass = sum+rest*longest, mass+rest
	}
	return sum / mass
}

func TestACohortReadsWhatItsTwinReads(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		n := 5 * (1 + r.IntN(12))
		var c cohort
		c.begin(1, n, 0, math.Inf(1), 0)
		var exact, atLeast []float64
		cuts := r.Float64()
		for range n {
			c.admit(0, Load{InFlight: 3}, 5, true)
		}
		for range n {
			x := 16 + r.NormFloat64()
			if r.Float64() < cuts {
				c.end(x, Canceled)
				atLeast = append(atLeast, x)
			} else {
				c.end(x, Success)
				exact = append(exact, x)
			}
		}
		var got reading
		if !c.read(time.Hour, &classes{}, false, &got) {
			t.Fatalf("%d exact and %d cut short: not read, though all have ended", len(exact), len(atLeast))
		}
		if want := twin(exact, atLeast); math.Abs(got.logTime-want) > 1e-9 {
			t.Fatalf("%d exact and %d cut short: level %v, its twin says %v", len(exact), len(atLeast), got.logTime, want)
		}
		if got.blind != (len(exact) == 0) {
			t.Fatalf("%d exact times, blind is %v", len(exact), got.blind)
		}
	}
}

// Callers that leave at random before their work ends once counted as work that ended sooner.
func TestCallersThatLeaveDoNotChangeTheLevel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var all, left float64
	const rounds = 400
	for range rounds {
		var a, b cohort
		a.begin(1, 100, 0, math.Inf(1), 0)
		b.begin(1, 100, 0, math.Inf(1), 0)
		for range 100 {
			a.admit(0, Load{InFlight: 1}, 5, true)
			b.admit(0, Load{InFlight: 1}, 5, true)
			work, leaves := 20*math.Exp(0.3*r.NormFloat64()), 40*r.Float64()
			a.end(math.Log(work*1e6), Success)
			if leaves < work {
				b.end(math.Log(leaves*1e6), Canceled)
			} else {
				b.end(math.Log(work*1e6), Success)
			}
		}
		var x, y reading
		a.read(time.Hour, &classes{}, false, &x)
		b.read(time.Hour, &classes{}, false, &y)
		all, left = all+x.logTime/rounds, left+y.logTime/rounds
	}
	if math.Abs(all-left) > 0.01 {
		t.Errorf("level %.3f, and %.3f if half of the callers leave", all, left)
	}
}

// TestWhatIsLostToOverload separates work lost to overload from work that its caller or a deadline
// ended for other reasons.
func TestWhatIsLostToOverload(t *testing.T) {
	usual := math.Log(20e6)
	for name, c := range map[string]struct {
		o    Outcome
		took time.Duration
		lost bool
	}{
		"done":                                  {Success, time.Second, false},
		"refused below":                         {Overload, time.Microsecond, true},
		"past its deadline":                     {Deadline, 30 * time.Millisecond, true},
		"a deadline that had nearly run out":    {Deadline, 10 * time.Millisecond, false},
		"its caller left at once":               {Canceled, 10 * time.Millisecond, false},
		"its caller left when it was late":      {Canceled, 30 * time.Millisecond, false},
		"its caller left when it was very late": {Canceled, 100 * time.Millisecond, true},
		"failed":                                {Failed, time.Second, false},
	} {
		var m cohort
		m.begin(1, 5, usual, usual+clearlySlow, 0)
		if got := m.isLost(logOf(c.took), c.o); got != c.lost {
			t.Errorf("%s: lost is %v", name, got)
		}
	}
}

// Some callers leave for other reasons, but not nearly all callers. With a queue in the baseline,
// nearly all callers once left before the work counted as clearly slow. No work counted as lost,
// and the law stayed at a limit where nobody got an answer.
func TestWhereNearlyAllCallersLeaveTheWorkIsLost(t *testing.T) {
	usual := math.Log(20e6)
	for _, c := range []struct{ left, want int }{{0, 0}, {5, 0}, {7, 0}, {8, 8}, {10, 10}} {
		var m cohort
		m.begin(1, 10, usual, usual+clearlySlow, 0)
		for i := range 10 {
			o := Success
			if i < c.left {
				o = Canceled
			}
			m.end(logOf(30*time.Millisecond), o)
		}
		if got := m.allLosses(); got != c.want {
			t.Errorf("%d of 10 left: %d lost, want %d", c.left, got, c.want)
		}
	}
}

// One request that hangs once stopped the law for as long as it hung.
func TestACohortIsBoundedInTime(t *testing.T) {
	for _, hang := range []int{2, 8, 40} {
		law := newAdaptive(forLatency)
		m := newModel(law, 10, 20*time.Millisecond)
		m.run(10 * time.Second)
		for range hang {
			law.Admit(m.now, m.load()) // and never ends
			m.seq++
		}
		reads := law.est.readings
		m.run(30 * time.Second)
		if got := law.est.readings - reads; got < 100 {
			t.Errorf("%d hang: %v readings in 30 s, want 100", hang, got)
		}
	}
}

func TestThePolicyHasAnAnswerToEverything(t *testing.T) {
	for p := range phases {
		for s := range signs {
			if policy[p][s] == nil {
				t.Errorf("nothing to do in phase %d on sign %d", p, s)
			}
		}
	}
}

// A single slot is in use whenever anything runs. Such use once counted as load, and the law tried
// a limit of two.
func TestASingleSlotThatNobodyWaitsForIsNotFull(t *testing.T) {
	for queued, want := range []bool{false, true} {
		var c cohort
		c.begin(1, 5, 0, 1, 0)
		for i := range uint64(5) {
			c.admit(time.Duration(i)*time.Second, Load{InFlight: 1, Queued: queued}, 1, true)
			c.end(0, Success)
		}
		if r := c.reading(5*time.Second, 5); r.full != want {
			t.Errorf("%d wait: all slots in use is %v", queued, r.full)
		}
	}
}
