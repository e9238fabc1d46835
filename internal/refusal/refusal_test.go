package refusal

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
)

func TestAdviceStaysNearTheWaitAndDiffersBetweenCallers(t *testing.T) {
	table := NewTable(1)
	for _, wait := range []time.Duration{time.Millisecond, 120 * time.Millisecond, time.Second, 7 * time.Second, time.Hour} {
		seen := map[time.Duration]bool{}
		for range 1000 {
			r := table.For(spillway.ReasonQueueFull, wait)
			if r.Reason != spillway.ReasonQueueFull || !errors.Is(r, spillway.ErrRejected) {
				t.Fatalf("wrong rejection %v", r)
			}
			low := min(wait, longest) * 3 / 4
			if r.RetryAfter < low || r.RetryAfter > max(2*wait, steps[1]) {
				t.Fatalf("advice %v for a wait of %v", r.RetryAfter, wait)
			}
			seen[r.RetryAfter] = true
		}
		if wait > 100*time.Millisecond && len(seen) < 2 {
			t.Errorf("every caller is told to return after %v together", wait)
		}
	}
	if r := table.For(spillway.ReasonClosed, 0); r.RetryAfter != 0 {
		t.Errorf("no wait gives advice %v", r.RetryAfter)
	}
}

func TestRefusingAllocatesNothing(t *testing.T) {
	table := NewTable(1)
	var sink error
	if n := testing.AllocsPerRun(1000, func() { sink = table.For(spillway.ReasonWaitTooLong, time.Second) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
	_ = sink
}

// Regression: a reason that was added later, or an invalid one, was beyond the table.
func TestEveryReasonHasARow(t *testing.T) {
	table := NewTable(1)
	for _, r := range append(spillway.Reasons(), 0, Reasons-1, Reasons, 255) {
		if got := table.For(r, 0).Reason; got != r {
			t.Errorf("row of %v says %v", r, got)
		}
	}
	if most := slices.Max(spillway.Reasons()); most >= Reasons {
		t.Errorf("there is room for %d reasons, and the last is %d", Reasons, most)
	}
}
