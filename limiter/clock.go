package limiter

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/internal/clock"
)

// epoch is where the time of a limiter begins. A limiter in a package variable may be used by several
// bubbles of testing/synctest and outside of them. Each bubble has a clock of its own, which starts in the
// year 2000. The time of the limiter goes on from where it was when another clock is read.
type epoch struct {
	base  atomic.Pointer[time.Time] // begin by the real clock; future while a bubble uses the limiter
	first time.Time                 // begin by the real clock when the limiter was made: base refers to it, and it never changes

	mu     sync.Mutex // locked before Limiter.mu
	bubble *bubble    // whose clock was read last; nil: the real clock was
}

// bubble is the clock of a bubble.
type bubble struct {
	begin time.Time // of the limiter's time, by this clock
	read  time.Time // the latest time of this clock
}

// future makes all times negative, by every clock.
var future = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// now returns the time since the limiter was made. It reads only the monotonic clock, which is cheaper than
// time.Now. The caller holds no lock of the limiter.
func (l *Limiter) now() time.Duration {
	l.check()
	now := l.realNow()
	if now < 0 {
		now = l.otherClock()
	}
	return now
}

// check panics for the zero Limiter.
func (l *Limiter) check() {
	if l.gate == nil {
		panic("limiter: a Limiter is made by New")
	}
}

// realNow is now for a limiter that New made, or negative if another clock is to be read. A call of realNow is inlined.
func (l *Limiter) realNow() time.Duration {
	return time.Since(*l.epoch.base.Load())
}

// otherClock is now for a clock that l.epoch.base does not belong to.
func (l *Limiter) otherClock() time.Duration {
	e := &l.epoch
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if b := e.bubble; clock.Virtual(now) && b != nil && !now.Before(b.read) { // the clock of another bubble begins anew
		b.read = now
		return now.Sub(b.begin)
	}
	l.mu.Lock()
	last := l.last
	for l.free() {
	}
	e.set(now, last)
	return last
}

// start begins the time of a new limiter.
func (e *epoch) start(now time.Time) {
	if clock.Virtual(now) {
		e.set(now, 0)
		return
	}
	e.first = now
	e.base.Store(&e.first)
}

// set makes now, which was just read, the time last of the limiter.
func (e *epoch) set(now time.Time, last time.Duration) {
	begin := now.Add(-last)
	if clock.Virtual(now) {
		e.bubble = &bubble{begin, now}
		e.base.Store(&future)
	} else {
		e.bubble = nil
		e.base.Store(&begin)
	}
}

// at returns t as a time of the limiter. Of a t without a monotonic reading, at knows how far away it is. So a
// wall clock that was set since the limiter was made changes nothing.
func (l *Limiter) at(t time.Time) time.Duration {
	if base := l.epoch.base.Load(); base != &future && !clock.Virtual(t) {
		return t.Sub(*base)
	}
	return l.now() + min(time.Until(t), forever/2)
}
