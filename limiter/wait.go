package limiter

import (
	"context"
	"errors"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/clock"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/refusal"
)

// waiter is one blocked caller. A grant sets slot, and a drop sets refused; after the
// unlock, ready then receives a message. The channel and the timer are used again, unless
// they belong to a bubble of testing/synctest.
type waiter struct {
	gate.Waiter
	ready   chan struct{}
	timer   *time.Timer
	bubble  bool // the wait began in a bubble
	arrival gate.Arrival
	slot    *slot
	refused spillway.Reason
	next    *waiter // next in waiters.free or in Limiter.woken
}

// waiters is the list of free waiters.
type waiters struct {
	free *waiter
	n    int
}

// first returns the first free waiter, and allocates one if there is none. The waiter
// stays free until take, because most work is admitted or refused at once.
func (ws *waiters) first() *waiter {
	if ws.free == nil {
		ws.free = &waiter{}
		ws.free.Owner = ws.free
		ws.n = 1
	}
	return ws.free
}

// take removes the first free waiter from the list, for the arrival a.
func (ws *waiters) take(a gate.Arrival) *waiter {
	w := ws.free
	ws.free, w.next, w.arrival = w.next, nil, a
	ws.n--
	w.bubble = clock.Virtual(time.Now())
	if w.bubble || w.ready == nil {
		w.ready, w.timer = make(chan struct{}, 1), nil
	}
	return w
}

// give returns w to the list.
func (ws *waiters) give(w *waiter) {
	if w.bubble {
		w.ready, w.timer = nil, nil
	}
	w.slot, w.refused, w.next = nil, 0, ws.free
	ws.free = w
	ws.n++
}

// All waiters together look every recheckEach for slots that they may have. Each of them looks not
// more often than recheckLeast, and less often the longer it has waited.
const (
	recheckLeast = 20 * time.Millisecond
	recheckEach  = 5 * time.Millisecond
	recheckParts = 16 // part of the time waited until the next look
)

// recheckEvery returns when a waiter of the given cost, that has waited for a time, checks whether
// time alone has made room: during a slow start, with signals, for large work, for which slots may be
// gathered, and where work may run without its slots. Zero means never: the operation that
// makes room wakes the waiter. The caller holds the lock.
func (l *Limiter) recheckEvery(cost int, waited time.Duration) time.Duration {
	switch {
	case l.over.rampFor > 0:
		return max(l.over.rampFor/64, time.Millisecond)
	case len(l.signals) > 0:
		return pollEvery
	case cost > 1 && l.maxWait == forever: // many such waiters check once a millisecond, together
		return max(l.gate.GatherFor(), time.Duration(l.gate.Large())*time.Millisecond)
	case cost > 1:
		return l.gate.GatherFor()
	case !l.aside:
		return 0
	}
	return max(recheckLeast, time.Duration(l.gate.Queued())*recheckEach, waited/recheckParts)
}

// recheck starts the waiters for which time alone has made room. It returns the time until
// the waiter w checks again.
func (l *Limiter) recheck(w *waiter) time.Duration {
	now := l.now()
	l.pollIfDue(now)
	now = l.lock(now)
	defer l.unlock()
	if l.Mode() == Enforce {
		l.relieve(now)
	}
	if l.tick(now) || len(l.signals) > 0 || w.arrival.Cost > 1 {
		l.grant(now)
	}
	return l.recheckEvery(w.arrival.Cost, now-w.Since())
}

// wait releases the lock and blocks until w is granted or dropped, ctx ends, or the time expires has come.
func (l *Limiter) wait(ctx context.Context, w *waiter, expires, recheck time.Duration) (Permit, error) {
	waits := true
	defer func() {
		if waits { // the observer, a law, a signal or ctx panicked or called runtime.Goexit
			l.abandon(w)
		}
	}()
	l.unlock()
	notified, expired := l.sleep(ctx, w, expires, recheck)
	if w.timer != nil {
		w.timer.Stop()
	}
	ctxErr := ctx.Err()
	late := ctxErr != nil && l.answersLate(ctxErr) // may call the user's code

	waits = false
	now := l.lock(l.now())
	left := ctxErr != nil && l.gate.Leave(now, &w.Waiter)
	switch {
	case left, expired && l.gate.Expire(&w.Waiter):
		notified = true // w left the queue by itself: there will be no message
		w.refused = spillway.ReasonWaitTooLong
		l.grant(now) // w may have blocked another waiter
	case w.slot == nil: // dropped and counted as refused, also if ctx ended at the same moment
	case ctxErr != nil: // granted at the same moment, and the caller is gone
		left = true
		l.revoke(now, w)
	default:
		l.gate.Taken(&w.Waiter, w.slot.work.Waited)
	}
	s, priority, waited, reason := w.slot, w.arrival.Priority, now-w.Since(), w.refused
	if notified { // otherwise the message that ends the wait is still to come and would reach the next caller
		l.waiters.give(w)
	}
	switch {
	case left:
		return Permit{}, l.left(ctxErr, late, priority, &w.Waiter, waited)
	case s == nil:
		advice := time.Duration(0)
		if reason == spillway.ReasonPreempted || reason == spillway.ReasonWaitTooLong {
			advice = l.gate.RetryAfter(priority)
		}
		return Permit{}, l.refuse(priority, refusal.Of(reason), advice, waited)
	}
	return l.started(s, nil)
}

// sleep blocks until w has a message, ctx ends or the time expires has come. Meanwhile sleep looks for
// room that time alone makes.
func (l *Limiter) sleep(ctx context.Context, w *waiter, expires, recheck time.Duration) (notified, expired bool) {
	for {
		var alarm <-chan time.Time
		if expires < forever || recheck > 0 {
			d := expires - l.now()
			if recheck > 0 {
				d = min(d, recheck)
			}
			if w.timer == nil {
				w.timer = time.NewTimer(d)
			} else {
				w.timer.Reset(d)
			}
			alarm = w.timer.C
		}
		select {
		case <-w.ready:
			return true, false
		case <-ctx.Done():
			return false, false
		case <-alarm:
			switch now := l.now(); {
			case now >= expires:
				return false, true
			case now >= w.arrival.Deadline: // ctx ends now
				recheck = 0
			default:
				recheck = l.recheck(w)
			}
		}
	}
}

// late is a refusal of work whose deadline has passed. It matches the rejection and
// context.DeadlineExceeded.
type late struct{ *spillway.Rejection }

func (e late) Unwrap() error        { return e.Rejection }
func (e late) Is(target error) bool { return target == context.DeadlineExceeded }

// answersLate reports whether ctxErr is a deadline that passed in front of the process. There
// someone still waits for an answer, which is a refusal; anywhere else the caller has left. The caller does not hold
// the lock, because errors are the user's code.
func (l *Limiter) answersLate(ctxErr error) bool {
	return l.door.front.Load() && errors.Is(ctxErr, context.DeadlineExceeded)
}

// left returns the error for work that the gate has counted as cancelled, because its context ended
// with ctxErr; isLate is what answersLate says of ctxErr. left unlocks.
func (l *Limiter) left(ctxErr error, isLate bool, p spillway.Priority, w *gate.Waiter, waited time.Duration) error {
	if !isLate {
		l.unlock()
		return ctxErr
	}
	l.gate.Late(p, w)
	return late{l.refuse(p, refusal.Of(spillway.ReasonDeadlineTooClose), 0, waited)}
}

// abandon removes a waiter whose wait has panicked, as if its context had ended.
func (l *Limiter) abandon(w *waiter) {
	now := l.lock(l.now())
	defer l.unlock()
	switch {
	case l.gate.Leave(now, &w.Waiter):
		l.grant(now)
	case w.slot != nil:
		l.revoke(now, w)
	}
}

// revoke takes back the slot that w was granted. The caller holds the lock.
func (l *Limiter) revoke(now time.Duration, w *waiter) {
	l.gate.RevokeWork(now, &w.slot.work)
	l.running.end(w.slot)
	l.grant(now)
}

// grant starts every waiter that may run now, and ends Drain when no work is left.
// Every operation that may have made room calls grant. While a user-defined law does not know the news, grant starts
// nobody: consult calls grant again. The caller holds the lock.
func (l *Limiter) grant(now time.Duration) {
	forced := l.Mode() != Enforce
	for l.gate.Queued() > 0 && (l.careful == nil || !l.careful.due) && (forced || !l.over.lease.over(now)) {
		next, granted := (*gate.Waiter)(nil), true
		if forced {
			next = l.gate.NextForced(now)
		} else {
			next, granted = l.gate.Next(now)
		}
		if next == nil {
			break
		}
		if !granted {
			l.drop(next, next.Late())
			continue
		}
		w := next.Owner.(*waiter)
		w.slot = l.start(now)
		w.slot.work.Priority = w.arrival.Priority // the gate's queue knows named priorities only
		l.wake(w)
	}
	l.changed()
	l.trim()
	if l.idle != nil && l.gate.Idle() {
		close(l.idle)
		l.idle = nil
	}
}

// drop refuses a waiter that lost its place. The caller holds the lock.
func (l *Limiter) drop(g *gate.Waiter, reason spillway.Reason) {
	w := g.Owner.(*waiter)
	w.refused = reason
	l.wake(w)
}

// dropAll refuses all waiters and returns their number. The caller holds the lock.
func (l *Limiter) dropAll() (n int) {
	for {
		next := l.gate.Drop()
		if next == nil {
			return n
		}
		l.drop(next, l.gate.ClosedFor())
		n++
	}
}

// wake schedules the notification of w for after the unlock, because waking a
// goroutine takes longer than all work under the lock.
func (l *Limiter) wake(w *waiter) { w.next, l.woken = l.woken, w }
