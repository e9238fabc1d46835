package limiter

import (
	"context"
	"math"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/limit"
)

// waiter is one blocked caller. slot is set when it was granted, refused when it
// was dropped; ready says so as soon as the lock is free. Channels and timers are
// kept per limiter, never in a package-level pool: a channel belongs to its
// synctest bubble.
type waiter struct {
	gate.Waiter
	ready    chan struct{}
	timer    *time.Timer
	priority spillway.Priority
	slot     *slot
	refused  spillway.Reason
	next     *waiter // in Limiter.waiters or Limiter.woken
}

func (l *Limiter) acquire(ctx context.Context, r Request, mayWait bool) (Permit, error) {
	gone := ctx.Err()
	a := gate.Arrival{Cost: min(max(r.Cost, 1), math.MaxInt32), Priority: r.Priority, Deadline: gate.Never}
	if end, ok := ctx.Deadline(); ok {
		a.Deadline = max(end.Sub(l.base), 0)
	}
	now := l.now()
	if now >= time.Duration(l.due.Load()) {
		l.poll(now)
	}
	if gone == nil && a.Cost == 1 && l.ended.Load() == nil {
		if rej := l.memos.repeat(now, a, mayWait); rej != nil {
			return l.refuse(r.Priority, rej)
		}
	}
	now = l.lock(now)
	if gone != nil {
		l.gate.Abandoned()
		l.unlock()
		return Permit{}, gone
	}
	mode := Mode(l.mode.Load())
	if mode == Off { // since a moment
		l.unlock()
		return Permit{}, nil
	}
	if l.law.tick(now) {
		l.grant(now)
	}
	var d gate.Decision
	var w *waiter
	switch {
	case mode == DryRun:
		d = l.gate.Force(now, a, mayWait)
	case mayWait:
		w = l.freeWaiter()
		d = l.gate.Arrive(now, a, &w.Waiter)
	default:
		d = l.gate.Arrive(now, a, nil)
	}
	switch d.Verdict {
	case gate.Admit:
		p := l.permit(l.start(now, a.Deadline, a.Cost, r.Priority))
		l.changed()
		changes := l.release()
		if l.quiet && changes == nil {
			return p, nil
		}
		return l.admitted(p, r.Priority, 0, changes)
	case gate.Reject:
		advice, row := l.gate.RetryAfter(r.Priority), l.press.row(d)
		if mode == Enforce && !l.law.moving() {
			l.memos.keep(l.gate, a, d, mayWait, advice, row)
		}
		rej := l.refusal.From(row, advice)
		l.unlock()
		return l.refuse(r.Priority, rej)
	}
	l.waiters, w.next, w.priority = w.next, nil, r.Priority
	l.nWaiters--
	l.busy = now
	if d.Preempted != nil {
		l.drop(d.Preempted, spillway.Preempted)
	}
	l.changed()
	nap := l.nap()
	changes := l.release()
	expires := now + l.maxWait
	if a.Deadline <= expires {
		expires = forever // ctx ends the wait
	}
	return l.wait(ctx, w, expires, nap, changes)
}

// nap is how often who waits looks whether time alone has made room: zero, except
// while the limit grows by itself or a signal presses. Otherwise whoever makes
// room wakes who waits. The caller holds the lock.
func (l *Limiter) nap() time.Duration {
	switch {
	case l.law.rampFor > 0:
		return max(l.law.rampFor/64, time.Millisecond)
	case l.press.Cap > 0:
		return pollEvery
	}
	return 0
}

// look makes room if time alone has, and returns when to look again.
func (l *Limiter) look() time.Duration {
	now := l.now()
	if now >= time.Duration(l.due.Load()) {
		l.poll(now)
	}
	now = l.lock(now)
	defer l.unlock()
	l.law.tick(now)
	l.grant(now)
	return l.nap()
}

// wait blocks until w is granted or dropped, ctx ends, or it expires.
func (l *Limiter) wait(ctx context.Context, w *waiter, expires, nap time.Duration, changes []limit.Decision) (Permit, error) {
	waits := true
	defer func() {
		if waits { // the observer, a signal or ctx panicked
			l.abandon(w)
		}
	}()
	l.tell(changes)
	told, expired := false, false
	for waiting := true; waiting; {
		var alarm <-chan time.Time
		if expires < forever || nap > 0 {
			d := expires - l.now()
			if nap > 0 {
				d = min(d, nap)
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
			told, waiting = true, false
		case <-ctx.Done():
			waiting = false
		case <-alarm:
			if expired = l.now() >= expires; expired {
				waiting = false
			} else {
				nap = l.look()
			}
		}
	}
	if w.timer != nil {
		w.timer.Stop()
	}
	gone := ctx.Err()

	waits = false
	now := l.lock(l.now())
	priority, waited := w.priority, now-w.Since()
	switch {
	case gone != nil && l.gate.Leave(&w.Waiter), expired && l.gate.Expire(&w.Waiter):
		told = true  // nothing will be
		l.grant(now) // what left may have stood in somebody's way
		if gone == nil {
			return l.turnAway(w, spillway.WaitTooLong, waited, told)
		}
	case w.slot == nil: // also when ctx ended at the same moment: it was counted so
		return l.turnAway(w, w.refused, waited, told)
	case gone != nil: // granted at the same moment: nobody is there to use it
		l.revoke(now, w)
	default:
		s := w.slot
		waited = s.grant.Start - w.Since()
		l.gate.Taken(waited)
		p := l.permit(s)
		l.keepWaiter(w, told)
		return l.admitted(p, priority, waited, l.release())
	}
	l.keepWaiter(w, told)
	l.unlock()
	return Permit{}, gone
}

// abandon takes out a waiter that will not look any more, as one that has left.
func (l *Limiter) abandon(w *waiter) {
	now := l.lock(l.now())
	defer l.unlock()
	switch {
	case l.gate.Leave(&w.Waiter):
		l.grant(now)
	case w.slot != nil:
		l.revoke(now, w)
	}
}

// revoke takes back what a waiter was granted. The caller holds the lock.
func (l *Limiter) revoke(now time.Duration, w *waiter) {
	l.gate.Revoke(now, w.slot.grant)
	l.freeSlot(w.slot)
	l.grant(now)
}

// turnAway ends the wait of a caller that was refused, and unlocks.
func (l *Limiter) turnAway(w *waiter, reason spillway.Reason, waited time.Duration, told bool) (Permit, error) {
	var advice time.Duration
	if reason == spillway.Preempted || reason == spillway.WaitTooLong {
		advice = l.gate.RetryAfter(w.priority)
	}
	priority := w.priority
	rej := l.refusal.Waited(reason, advice, waited)
	l.keepWaiter(w, told)
	l.unlock()
	return l.refuse(priority, rej)
}

// drop refuses a waiter that lost its place. The caller holds the lock.
func (l *Limiter) drop(g *gate.Waiter, reason spillway.Reason) {
	w := g.Owner.(*waiter)
	w.refused = reason
	l.wake(w)
}

// wake tells a waiter its end once the lock is free: to make a goroutine run takes
// longer than all that is done under the lock.
func (l *Limiter) wake(w *waiter) { w.next, l.woken = l.woken, w }

// dropAll refuses everybody who waits. The caller holds the lock.
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

// grant lets every waiter run that may run now, and ends Drain when nothing is
// left. Whatever may have made room calls it. The caller holds the lock.
func (l *Limiter) grant(now time.Duration) {
	forced := Mode(l.mode.Load()) != Enforce
	for l.gate.Queued() > 0 {
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
			l.drop(next, spillway.DeadlineTooClose)
			continue
		}
		w := next.Owner.(*waiter)
		w.slot = l.start(now, next.Deadline(), next.Cost(), w.priority)
		l.wake(w)
	}
	l.changed()
	l.trim()
	if l.idle != nil && l.gate.Idle() {
		close(l.idle)
		l.idle = nil
	}
}

// freeWaiter returns the first free waiter, which stays free until it is needed:
// most work is admitted or refused at once. The caller holds the lock.
func (l *Limiter) freeWaiter() *waiter {
	if l.waiters == nil {
		l.waiters = &waiter{ready: make(chan struct{}, 1)}
		l.waiters.Owner = l.waiters
		l.nWaiters = 1
	}
	return l.waiters
}

// keepWaiter frees w. If it was not told its end, which it found out by itself, the
// message is still to come and would reach the wrong one: then w is lost to the
// collector. The caller holds the lock.
func (l *Limiter) keepWaiter(w *waiter, told bool) {
	if !told {
		return
	}
	w.slot, w.refused, w.next = nil, 0, l.waiters
	l.waiters = w
	l.nWaiters++
}

// changed is called after everything but a rejection: answers that were kept no
// longer hold, and the limit may be another.
func (l *Limiter) changed() {
	if l.memos.live {
		l.memos.forget()
	}
	if n := int64(l.gate.Limit()); n != l.limit.Load() {
		l.relimit(int(n))
	}
}
