package demo

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// of is the total of a lane in a phase; empty if there is none.
func of(r *Result, phase, lane string) (found Total) {
	for _, t := range r.Summary {
		if t.Phase == phase && t.Lane == lane {
			found = t
		}
	}
	return found
}

// In virtual time the whole demonstration is quick, and its result does not depend on
// the machine.
func TestTheDemonstrationMakesItsPoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := 0
		res, err := Run(t.Context(), 25*time.Second, func(Phase, Row) { rows++ })
		if err != nil {
			t.Fatal(err)
		}
		if rows != 25 || len(res.Rows) != 25 || res.Partial || len(res.Summary) != 9 {
			t.Errorf("%d rows seen, %d kept, partial %v, %d totals", rows, len(res.Rows), res.Partial, len(res.Summary))
		}
		for _, want := range []struct {
			phase, lane string
			low, high   float64
		}{
			{"calm", "unprotected", .95, 1.05}, {"calm", "semaphore, 4x too large", .95, 1.05}, {"calm", "spillway, no number", .95, 1.05},
			{"storm", "unprotected", 0, .1}, {"storm", "semaphore, 4x too large", 0, .2}, {"storm", "spillway, no number", .85, 1.05},
			{"after the storm", "unprotected", 0, .6}, {"after the storm", "spillway, no number", .95, 1.05},
		} {
			if got := of(res, want.phase, want.lane).Share(); got < want.low || got > want.high {
				t.Errorf("%s, %s: %.2f of what was possible, want %.2f to %.2f", want.phase, want.lane, got, want.low, want.high)
			}
		}
		if got := of(res, "storm", "spillway, no number").Critical; got < .95 {
			t.Errorf("%.2f of the critical requests were answered", got)
		}
		if v := res.Verdicts; len(v) != 3 || !strings.HasSuffix(v[0], "still down") || !strings.HasSuffix(v[2], "%") {
			t.Errorf("after the storm the unprotected lane is down and ours is not, but:\n%s", strings.Join(v, "\n"))
		}
		t.Log("\n" + strings.Join(res.Verdicts, "\n"))
	})
}

// If it is stopped in the storm, the result has the rows and the totals of the calm,
// but not those of the unfinished storm.
func TestAPartialDemonstrationTotalsWholePhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		res, err := Run(ctx, 25*time.Second, func(_ Phase, r Row) {
			if r.At == 10 {
				cancel()
			}
		})
		if err != nil || !res.Partial || len(res.Rows) != 10 || len(res.Summary) != 3 {
			t.Fatalf("partial %v, %d rows, %d totals, %v", res.Partial, len(res.Rows), len(res.Summary), err)
		}
		for i, lane := range Lanes {
			if got := of(res, "calm", lane.Name).Share(); got < .95 || got > 1.05 || res.Verdicts[i] != lane.Name+": calm 100 %" {
				t.Errorf("%.2f of what was possible, %q", got, res.Verdicts[i])
			}
		}
	})
}

func TestThreePanicsCostNoSlot(t *testing.T) {
	p, err := ThreePanics(t.Context())
	if err != nil || !p.Spillway || p.ByHand || p.Conclusion == "" {
		t.Errorf("%+v, %v", p, err)
	}
}
