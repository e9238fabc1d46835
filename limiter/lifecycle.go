package limiter

import (
	"context"
	"fmt"

	"github.com/spillway-go/spillway"
)

// SetMode changes the mode at once. Leaving Enforce admits all callers that wait.
// Work admitted while the mode was Off is not counted, and Drain does not wait
// for it.
//
// With the default law, a dry run and enforcement each have one of their own that
// starts anew. Enforcement begins with the estimate of the dry run, which fades
// over two seconds while the adaptive law finds out. A law of your own stays.
//
// A mode that does not exist changes nothing: a wrong number must not switch the
// protection off.
func (l *Limiter) SetMode(m Mode) {
	if m > Off {
		return
	}
	now := l.lock(l.now())
	defer l.unlock()
	l.replaceLaw(now, Mode(l.mode.Swap(uint32(m))), m)
	l.grant(now)
	l.overruled = l.overruledBy() // the limit may be what it was, for another reason
}

// Mode returns the mode. It takes no lock.
func (l *Limiter) Mode() Mode { return Mode(l.mode.Load()) }

// Open reports whether work is still taken in: false once Drain or Close was called.
// It takes no lock.
func (l *Limiter) Open() bool { return !l.shut.Load() }

// SetBounds keeps what the law says between low and high from now on; zero means no
// bound on that side. The law learns on within them. What protects more goes below
// low: a signal that presses (to one slot, if it goes on), a lease, a slow start. It
// fails when low is above high or one is negative.
func (l *Limiter) SetBounds(low, high int) error {
	if low < 0 || high < 0 || high > 0 && low > high {
		return fmt.Errorf("limiter: bounds %d and %d: use 0 for no bound, or a low one that is not above the high one", low, high)
	}
	now := l.lock(l.now())
	defer l.unlock()
	l.overruled = l.overruledBy() // until now; the law may have moved meanwhile
	l.over.low, l.over.high = low, high
	l.bound()
	l.grant(now)
	return nil
}

// Limit returns how much may run at once now. It takes no lock.
func (l *Limiter) Limit() int { return int(l.limit.Load()) }

// Drain closes the intake, so that later arrivals are rejected as Draining, and
// waits until the callers that already waited have been served and all work has
// ended. When ctx ends first, the callers that still wait are rejected, and the error
// is a *spillway.DrainError; running work is left alone. It may be called again
// to wait on.
func (l *Limiter) Drain(ctx context.Context) error {
	l.closeIntake(spillway.Draining)
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
	l.grant(now)                                  // ends other drains that only waited for the queue
	running := l.gate.Running() + l.gate.Queued() // what is still queued was granted just now
	if dropped == 0 && running == 0 {
		return nil
	}
	return &spillway.DrainError{Dropped: dropped, Running: running, Cause: cause}
}

// closeIntake refuses later arrivals, and leaves the callers that wait.
func (l *Limiter) closeIntake(reason spillway.Reason) {
	l.lock(l.now())
	defer l.unlock()
	l.gate.CloseIntake(reason)
	l.shut.Store(true)
	l.changed()
}

// Close refuses all callers that wait and every later arrival as Closed. It does
// not wait; work that runs goes on and may still end its permit. Closing again
// does nothing.
func (l *Limiter) Close() {
	now := l.lock(l.now())
	defer l.unlock()
	l.gate.CloseIntake(spillway.Closed)
	l.shut.Store(true)
	l.dropAll()
	l.grant(now)
}
