package limiter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// Callers without a deadline were seen to leave after a second. Of five that have waited longer than
// that, some are refused: not as callers with a deadline, and with advice.
func TestACallerWithoutADeadlineIsNotRefusedForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Law: limit.NewFixed(1)})
		defer l.Close()
		work := func(took time.Duration, end error) {
			p, err := l.Acquire(context.Background())
			if r, ok := errors.AsType[*spillway.Rejection](err); ok {
				if r.Reason != spillway.ReasonWaitTooLong || r.RetryAfter == 0 {
					t.Errorf("refused as %v, to come back after %v", r.Reason, r.RetryAfter)
				}
				return
			}
			time.Sleep(took)
			p.Done(end)
		}
		for range 40 {
			work(time.Second, context.Canceled)
		}
		for range 800 {
			work(12*time.Millisecond, nil)
		}
		go work(1100*time.Millisecond, nil)
		synctest.Wait()
		for range 5 {
			go work(10*time.Millisecond, nil)
		}
		time.Sleep(2 * time.Second)
		if s := l.Stats(); s.RejectedBy[spillway.ReasonWaitTooLong] == 0 || s.InFlight > 0 {
			t.Errorf("nobody was refused, or work is left: %+v", s)
		}
	})
}
