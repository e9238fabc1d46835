package gate

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// mix offers normal work with a mean of 20 ms to a gate, and after two seconds one large piece that
// takes all slots. It returns how long the large piece waited, Never if it did not run in time, the
// longest wait of the normal work, and how much normal work was refused.
func mix(slots int, load float64, p spillway.Priority, has time.Duration, mayWait, hung bool) (waited, longest time.Duration, refused int) {
	const mean = 20 * time.Millisecond
	g := New(Config{Law: limit.NewFixed(slots), QueueSize: 1000, MaxWait: 10 * time.Second})
	r := rand.New(rand.NewPCG(1, 2))
	type run struct {
		Grant
		ends time.Duration
	}
	var runs []run // in the order of their ends
	start := func(w Grant) {
		e := run{w, w.Start + time.Duration(r.ExpFloat64()*float64(mean))}
		i, _ := slices.BinarySearchFunc(runs, e, func(a, b run) int { return cmp.Compare(a.ends, b.ends) })
		runs = slices.Insert(runs, i, e)
	}
	large, waited := &Waiter{}, Never
	came := 2 * time.Second
	next := func(now time.Duration) {
		for {
			w, granted := g.Next(now)
			switch {
			case w == nil:
				return
			case !granted:
				refused++
				continue
			case w == large:
				waited = now - came
			default:
				longest = max(longest, now-w.Since())
			}
			g.Taken(w, now-w.Since())
			start(g.Started())
		}
	}
	if hung {
		g.Arrive(0, Arrival{Cost: 1, Deadline: Never}, nil)
	}
	asked := false
	for now := time.Duration(0); now < came+10*time.Second; {
		now += time.Duration(r.ExpFloat64() * float64(mean) / (load * float64(slots)))
		for len(runs) > 0 && runs[0].ends <= now {
			e := runs[0]
			runs = runs[1:]
			g.End(e.ends, e.Grant, limit.Success)
			next(e.ends)
		}
		if now > came && !asked {
			asked = true
			if d := g.Arrive(now, Arrival{Cost: slots, Priority: p, Deadline: Never}, large); d.Action == Admit {
				return 0, longest, refused
			}
		}
		var w *Waiter
		if mayWait {
			w = &Waiter{}
		}
		switch d := g.Arrive(now, Arrival{Cost: 1, Deadline: now + has}, w); d.Action {
		case Admit:
			start(g.Started())
		case Reject:
			refused++
		}
		next(now)
	}
	return waited, longest, refused
}

// With 32 slots and a mean of 40 % in use, there is hardly ever a moment in which no slot is in
// use. Work of low priority that costs all slots once waited until it was refused.
func TestLargeWorkOfLowPriorityGetsItsTurn(t *testing.T) {
	for _, slots := range []int{8, 32, 100} {
		for _, load := range []float64{0.2, 0.4, 0.7} {
			waited, longest, refused := mix(slots, load, spillway.Low, time.Second, true, false)
			if waited > 2*time.Second || longest > 250*time.Millisecond || refused > 0 {
				t.Errorf("%d slots at %v: it waited %v, the normal work up to %v, and %d of that were refused", slots, load, waited, longest, refused)
			}
		}
	}
}

// An arrival that cannot wait gets a free slot in spite of the gathering.
func TestLargeWorkOfLowPriorityCostsNobodyAFreeSlot(t *testing.T) {
	for name, c := range map[string]struct {
		has     time.Duration
		mayWait bool
	}{"no time": {40 * time.Millisecond, true}, "does not wait": {time.Second, false}} {
		if _, longest, refused := mix(100, 0.4, spillway.Low, c.has, c.mayWait, false); longest > 0 || refused > 0 {
			t.Errorf("%s: with most slots free normal work waited up to %v, and %d were refused", name, longest, refused)
		}
	}
}

// Work that hangs leaves no moment in which nothing runs. More important work once waited for such
// a moment until the large work had left, and most of it was refused.
func TestSlotsAreGatheredForLargeWorkForABoundedTime(t *testing.T) {
	for _, c := range []struct {
		load float64
		most int // refusals in 12 seconds
	}{{0.4, 0}, {0.7, 0}, {1.5, 12_000}} { // at 1.5, a third of 29,000 must be refused; 25,000 once were
		if _, longest, refused := mix(32, c.load, spillway.Low, 2*time.Second, true, true); longest > time.Second || refused > c.most {
			t.Errorf("at %v: normal work waited up to %v, and %d were refused", c.load, longest, refused)
		}
	}
}
