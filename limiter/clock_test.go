package limiter

import (
	"context"
	"testing"
	"time"
	"unsafe"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// stepped returns a time that was read an hour ago, since when the wall clock was stepped by the
// given duration. Since the time was read, the monotonic clock has gone on by an hour, and the wall
// clock by an hour and the step. Package time has no other way to such a time than to set the clock of the machine.
func stepped(t *testing.T, by time.Duration) time.Time {
	t.Helper()
	base := time.Now().Add(-time.Hour - by)
	(*struct {
		wall uint64
		ext  int64 // with a monotonic reading: that reading
		loc  *time.Location
	})(unsafe.Pointer(&base)).ext += int64(by)
	now := time.Now()
	if mono, wall := now.Sub(base), now.Round(0).Sub(base.Round(0)); mono.Round(time.Minute) != time.Hour || wall.Round(time.Minute) != time.Hour+by {
		t.Fatalf("the wall clock was not stepped: %v by the one clock, %v by the other", mono, wall)
	}
	return base
}

// endsAt is a context whose deadline is at, as it is: one that was received, or read from a file.
type endsAt struct {
	context.Context
	at time.Time
}

func (e endsAt) Deadline() (time.Time, bool) { return e.at, true }

// A deadline or the end of a lease without a monotonic reading was once compared with the time at which the limiter
// was made. After the wall clock was set back, it had passed; after it was set forward, it was far away.
func TestTimesOfTheWallClockHoldAfterTheClockWasSet(t *testing.T) {
	for _, by := range []time.Duration{-3 * time.Hour, 0, 3 * time.Hour} {
		l := configured(t, Config{Law: limit.NewFixed(1), IgnoreProcessors: true})
		base := stepped(t, by)
		l.epoch.base.Store(&base)
		for kind, in := range map[string]func(time.Duration) time.Time{
			"wall":      func(left time.Duration) time.Time { return time.Now().Add(left).Round(0) },
			"monotonic": func(left time.Duration) time.Time { return time.Now().Add(left) },
		} {
			for left, want := range map[time.Duration]spillway.Reason{
				time.Minute: 0, 2 * time.Hour: 0, 1 << 62: 0, 0: spillway.ReasonDeadlineTooClose, -time.Minute: spillway.ReasonDeadlineTooClose,
			} {
				p, err := l.TryAcquire(endsAt{t.Context(), in(left)})
				if reason(err) != want {
					t.Errorf("stepped by %v, a %s deadline in %v: %v", by, kind, left, err)
				}
				p.Done(nil)
			}
			l.SetLease(1, in(time.Minute), "ours")
			acquire(t, l).Done(nil)
			l.SetLease(1, in(-time.Minute), "ours")
			_, err := l.Acquire(t.Context())
			leased(t, err, "ours")
			l.SetLease(0, time.Time{}, "")
			acquire(t, l).Done(nil)
		}
	}
}
