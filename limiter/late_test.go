package limiter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
)

// In front of a service, a client whose deadline passed in the queue was answered 503 with a reason,
// and counted as one that had left.
func TestInFrontADeadlineThatPassesIsARefusal(t *testing.T) {
	for name, c := range map[string]struct {
		front           bool
		mode            Mode
		dryRun, onEntry bool // Request.DryRun; the deadline has passed on arrival
		leaves          bool // the caller leaves before the deadline
		want            spillway.Reason
		admitted        bool
		would           uint64
	}{
		"while waiting":              {front: true, want: spillway.ReasonDeadlineTooClose},
		"on arrival":                 {front: true, onEntry: true, want: spillway.ReasonDeadlineTooClose},
		"inside":                     {},
		"inside, on arrival":         {onEntry: true},
		"the caller left":            {front: true, leaves: true},
		"a dry run refuses nothing":  {front: true, mode: DryRun, onEntry: true, admitted: true, would: 1},
		"nor for a part of callers":  {front: true, dryRun: true, onEntry: true, admitted: true, would: 1},
		"a dry run, the caller left": {front: true, mode: DryRun, onEntry: true, leaves: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []*spillway.Rejection
				l := fixed(t, 1, 10)
				l.observer = &Observer{Rejected: func(_ spillway.Priority, r *spillway.Rejection) { told = append(told, r) }}
				if c.front {
					l.Front()
				}
				held := acquire(t, l)
				l.SetMode(c.mode)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if c.leaves {
					time.AfterFunc(time.Second/2, cancel)
				}
				waited := time.Second
				if c.onEntry {
					<-ctx.Done()
					waited = 0
				}
				p, err := l.AcquireWith(ctx, Request{DryRun: c.dryRun})
				if c.admitted != (err == nil) || err != nil && !errors.Is(err, ctx.Err()) || reason(err) != c.want || errors.Is(err, spillway.ErrRejected) != (c.want != 0) {
					t.Errorf("%v", err)
				}
				if rej, ok := errors.AsType[*spillway.Rejection](err); ok && (len(told) != 1 || told[0] != rej || rej.Waited != waited) {
					t.Errorf("the observer was told %v, the caller %+v", told, rej)
				} else if !ok && told != nil {
					t.Errorf("the observer was told %v", told)
				}
				p.Done(nil)
				held.Done(nil)
				s := l.Stats()
				refused := s.RejectedBy[spillway.ReasonDeadlineTooClose]
				if s.Rejected != refused || refused > 0 != (c.want != 0) || s.Cancelled > 0 != (err != nil && c.want == 0) || s.WouldReject != c.would {
					t.Errorf("%d refused, %d cancelled, %d would be refused", s.Rejected, s.Cancelled, s.WouldReject)
				}
				atRest(t, l)
			})
		})
	}
}
