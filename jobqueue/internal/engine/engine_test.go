package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
)

func TestErrorOfAHandlerDecides(t *testing.T) {
	p := jobqueue.Policy{MaxAttempts: 3, Backoff: time.Second, MaxBackoff: 3 * time.Second}
	failed := errors.New("failed")
	rejected := &spillway.Rejection{Reason: spillway.ReasonQueueFull, RetryAfter: time.Minute}
	for name, c := range map[string]struct {
		err     error
		attempt int
		fate    Fate
		after   time.Duration // without jitter
	}{
		"done":                    {nil, 1, Finish, 0},
		"done at last":            {nil, 9, Finish, 0},
		"failed":                  {failed, 1, Retry, time.Second},
		"failed twice":            {failed, 2, Retry, 2 * time.Second},
		"failed too often":        {failed, 3, Bury, 0},
		"again":                   {jobqueue.RetryAfter(time.Hour, failed), 2, Retry, time.Hour},
		"again, wrapped":          {fmt.Errorf("x: %w", jobqueue.RetryAfter(0, nil)), 1, Retry, 0},
		"again too often":         {jobqueue.RetryAfter(time.Hour, failed), 3, Bury, 0},
		"dead":                    {jobqueue.Dead("why"), 1, Bury, 0},
		"dead, wrapped":           {fmt.Errorf("x: %w", jobqueue.Dead("why")), 1, Bury, 0},
		"rejected":                {fmt.Errorf("x: %w", rejected), 99, Defer, time.Minute},
		"rejected without advice": {spillway.ErrRejected, 1, Defer, deferAtLeast},
		"rejected and dead":       {errors.Join(rejected, jobqueue.Dead("why")), 1, Bury, 0},
	} {
		v := Settle(p, c.err, c.attempt)
		jittered := v.After >= c.after && v.After <= c.after+c.after/4
		if v.Fate != c.fate || !jittered || (v.Reason != "") != (c.fate == Bury) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// Neither the way Work ended nor a driver's error for a cancelled query changes the settlement.
func TestAnErrorAfterTheEndOfWorkIsNoAttempt(t *testing.T) {
	p := jobqueue.Policy{MaxAttempts: 1}
	rejected := &spillway.Rejection{Reason: spillway.ReasonQueueFull, RetryAfter: time.Minute}
	for name, c := range map[string]struct {
		err  error
		want Settlement
	}{
		"done":         {nil, Settlement{Fate: Finish}},
		"cancelled":    {context.Canceled, Settlement{Fate: Defer}},
		"late":         {context.DeadlineExceeded, Settlement{Fate: Defer}},
		"its own":      {errors.New("query cancelled"), Settlement{Fate: Defer}},
		"another time": {jobqueue.RetryAfter(time.Hour, nil), Settlement{Fate: Defer}},
		"rejected":     {rejected, Settlement{Fate: Defer, After: time.Minute}},
		"dead":         {jobqueue.Dead("why"), Settlement{Fate: Bury, Reason: "why"}},
	} {
		if v := SettleEnded(p, c.err); v != c.want {
			t.Errorf("%s: %+v, want %+v", name, v, c.want)
		}
	}
}

func TestBackoffIsBounded(t *testing.T) {
	for _, p := range []jobqueue.Policy{{MaxAttempts: 1 << 40}, {MaxAttempts: 1 << 40, Backoff: time.Hour}, {MaxAttempts: 1 << 40, Backoff: 1 << 62}} {
		for _, attempt := range []int{1, 2, 10, 100, 1 << 30} {
			after := Settle(p, errors.New("failed"), attempt).After
			if most := max(defaultMaxBackoff, p.Backoff); after <= 0 || after > most+most/4 {
				t.Errorf("%+v: %s after attempt %d", p, after, attempt)
			}
		}
	}
}

func TestPolicyNamesEveryFault(t *testing.T) {
	err := Check(jobqueue.Policy{MaxAttempts: -1, Backoff: -1, MaxBackoff: -1})
	for _, field := range []string{"MaxAttempts", "Backoff", "MaxBackoff"} {
		if err == nil || !strings.Contains(err.Error(), field+" is") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if Check(jobqueue.Policy{}) != nil || Attempts(jobqueue.Policy{}) != defaultAttempts {
		t.Error("the zero policy does not work")
	}
}

func TestReasonIsClipped(t *testing.T) {
	v := Settle(jobqueue.Policy{}, jobqueue.Dead(strings.Repeat("ü", longestReason)), 1)
	if len(v.Reason) > longestReason+5 || !strings.HasSuffix(v.Reason, "ü …") {
		t.Errorf("%d bytes, ends with %q", len(v.Reason), v.Reason[len(v.Reason)-8:])
	}
}

func TestBackoffStaysADuration(t *testing.T) {
	for _, first := range []time.Duration{1, 3, math.MaxInt64/2 + 1, math.MaxInt64} {
		p := jobqueue.Policy{MaxAttempts: 200, Backoff: first, MaxBackoff: math.MaxInt64}
		for attempt := 1; attempt < 100; attempt++ {
			if v := Settle(p, errors.New("failed"), attempt); v.After <= 0 {
				t.Fatalf("%d ns first: %s after attempt %d", first, v.After, attempt)
			}
		}
	}
}
