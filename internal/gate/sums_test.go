package gate

import (
	"math"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// The sum of two costs once overflowed an int and was below the limit. Where an int has 32
// bits, the largest cost of a request was enough. Work was admitted over the
// limit, and the number of slots in use was negative.
func TestCostsAsLargeAsPossibleAddUp(t *testing.T) {
	for _, most := range []int{1, 100, math.MaxInt} {
		g := New(Config{Law: limit.NewFixed(most), QueueSize: 9, MaxWait: time.Minute})
		huge := Arrival{Cost: math.MaxInt, Deadline: Never}
		if d := g.Arrive(0, huge, nil); d.Action != Admit {
			t.Fatalf("limit %d: %+v to an idle gate", most, d)
		}
		first := g.Started()
		for _, a := range []Arrival{huge, {Cost: 1, Deadline: Never}, {Cost: math.MaxInt, Deadline: Never, Traits: OverShare}} {
			if d := g.Arrive(1, a, nil); d.Action != Reject {
				t.Errorf("limit %d: a cost of %d was admitted beside one that takes all", most, a.Cost)
			}
		}
		waits := []*Waiter{{}, {}}
		for _, w := range waits {
			if d := g.Arrive(1, huge, w); d.Action != Wait {
				t.Errorf("limit %d: %+v", most, d)
			}
		}
		if p := g.predict(levels-1, 1); p < 0 {
			t.Errorf("limit %d: a wait of %v is predicted", most, p)
		}
		forced := huge
		forced.Traits = DryRun
		var more []Grant
		for range 3 {
			if d := g.Arrive(2, forced, nil); d.Action != Admit {
				t.Errorf("limit %d: %+v in a dry run", most, d)
			}
			more = append(more, g.Started())
			if n := g.InFlight(); n != math.MaxInt {
				t.Errorf("limit %d: %d in flight", most, n)
			}
		}
		for _, w := range more {
			g.End(3, w, limit.Success)
		}
		if w, _ := g.Next(3); w != nil {
			t.Errorf("limit %d: a waiter was let in beside work that takes all", most)
		}
		g.End(4, first, limit.Success)
		for _, want := range waits {
			w, granted := g.Next(4)
			if w != want || !granted {
				t.Fatalf("limit %d: %v, %v", most, w, granted)
			}
			g.Taken(w, 4)
			g.End(4, g.Started(), limit.Success)
		}
		if g.InFlight() != 0 || !g.Idle() {
			t.Errorf("limit %d: %d in flight in the end", most, g.InFlight())
		}
	}
}

// A sum that overflows does not exceed a lease.
func TestACostAsLargeAsPossibleStaysWithinALease(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(10), MaxRefused: 0.01})
	g.SetBounds(Bounds{Leased: 5})
	for range 1000 {
		g.Arrive(0, Arrival{Cost: 1, Deadline: Never}, nil)
		g.Arrive(0, Arrival{Cost: math.MaxInt, Deadline: Never}, nil)
	}
	if g.InFlight() != 5 {
		t.Errorf("%d of 5 leased slots are in use", g.InFlight())
	}
}

// A dry run may begin while billions of slots are in use.
func TestADryRunBeginsWithAnyNumberOfSlots(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(math.MaxInt)})
	g.Arrive(0, Arrival{Cost: math.MaxInt - 10, Deadline: Never}, nil)
	w := g.Started()
	if d := g.Force(1, Arrival{Cost: 1, Deadline: Never}, false, 0); d.Action != Admit || d.Reason != 0 {
		t.Errorf("%+v", d)
	}
	if used := g.dry.used; used != math.MaxInt-9 {
		t.Errorf("%v slots would be in use", used)
	}
	g.End(2, w, limit.Success)
	g.End(2, g.Started(), limit.Success)
}
