package limiter

import (
	"context"
	"fmt"

	"github.com/spillway-go/spillway"
)

// SetMode changes the mode at once. Leaving Enforce admits all callers that wait.
// Work admitted while the mode was Off is not counted, and Drain does not wait
// for such work.
//
// With the default law, each change to or from DryRun starts a new law. After a dry
// run, enforcement begins with the estimate of the dry run, which fades over two
// seconds while the adaptive law learns. A user-defined law stays.
//
// An unknown mode changes nothing: a wrong number must not switch the protection off.
func (l *Limiter) SetMode(m Mode) {
	if m > Off {
		return
	}
	now := l.lock(l.now())
	defer l.unlock()
	l.replaceLaw(now, Mode(l.mode.Swap(uint32(m))), m)
	l.grant(now)
	l.noteRule() // the limit may be the same for another reason
}

// Mode returns the mode. Mode takes no lock.
func (l *Limiter) Mode() Mode { return Mode(l.mode.Load()) }

// Open reports whether the limiter accepts work: false once Drain or Close was called.
// Open takes no lock.
func (l *Limiter) Open() bool { return !l.shut.Load() }

// SetBounds keeps the limit of the law between low and high from now on; zero means no
// bound on that side. The law continues to learn within the bounds. A lease, a slow start
// and a signal that presses (to one slot, if it goes on) may lower the limit below low.
// SetBounds returns an error if low is above high or either bound is negative.
func (l *Limiter) SetBounds(low, high int) error {
	if low < 0 || high < 0 || high > 0 && low > high {
		return fmt.Errorf("limiter: bounds %d and %d: use 0 for no bound, or a low one that is not above the high one", low, high)
	}
	now := l.lock(l.now())
	defer l.unlock()
	l.noteRule() // before the change; the law's limit may have changed meanwhile
	l.beginHistory()
	l.over.low, l.over.high = low, high
	l.bound()
	l.grant(now)
	return nil
}

// Limit returns how many slots may be in use now. Limit takes no lock.
func (l *Limiter) Limit() int { return int(l.limit.Load()) }

// Drain closes the intake, so that later arrivals are rejected as Draining. Drain then
// waits until all waiting callers have been served and all work has ended. If ctx ends
// first, Drain rejects the callers that still wait and returns a *spillway.DrainError;
// running work continues. Drain may be called again to continue the wait.
func (l *Limiter) Drain(ctx context.Context) error {
	l.closeIntake(spillway.ReasonDraining)
	l.lock(l.now())
	if l.gate.Idle() {
		l.unlock()
		return nil
	}
	if l.idle == nil {
		l.idle = make(chan struct{})
	}
	idle := l.idle
	l.unlock()

	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	cause := ctx.Err()
	now := l.lock(l.now())
	defer l.unlock()
	dropped := l.dropAll()
	l.grant(now)                                  // ends other Drain calls that only waited for the queue
	running := l.gate.Running() + l.gate.Queued() // only granted waiters still count as queued
	if dropped == 0 && running == 0 {
		return nil
	}
	left := &spillway.DrainError{Dropped: dropped, Running: running, Cause: cause}
	if w := l.gate.Eldest(); w != nil {
		left.Oldest, left.Kind = now-w.Start, l.gate.NameOf(w)
	}
	return left
}

// closeIntake makes the limiter refuse later arrivals. Waiting callers stay.
func (l *Limiter) closeIntake(reason spillway.Reason) {
	l.lock(l.now())
	defer l.unlock()
	l.gate.CloseIntake(reason)
	l.shut.Store(true)
	l.changed()
}

// Close refuses all waiting callers and every later arrival as Closed. Close does not
// wait. Running work continues and may still end its permit. A second Close does nothing.
func (l *Limiter) Close() {
	now := l.lock(l.now())
	defer l.unlock()
	l.gate.CloseIntake(spillway.ReasonClosed)
	l.shut.Store(true)
	l.dropAll()
	l.grant(now)
}
