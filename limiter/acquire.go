package limiter

import (
	"cmp"
	"context"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/carry"
	"github.com/spillway-go/spillway/internal/clock"
	"github.com/spillway-go/spillway/internal/gate"
)

// acquire asks the gate, and waits if the gate queues the caller.
func (l *Limiter) acquire(ctx context.Context, r Request) (Permit, error) {
	ctxErr, mayWait := ctx.Err(), !r.NoWait
	if Mode(l.mode.Load()) == Off && !l.shut.Load() {
		return Permit{}, ctxErr
	}
	if r.Priority == spillway.Normal || r.Cost == 0 || r.Kind == "" {
		if w := carry.From(ctx); w != nil {
			r.Priority, r.Cost = cmp.Or(r.Priority, spillway.Priority(w.Priority)), cmp.Or(r.Cost, int(w.Cost))
			r.Kind = cmp.Or(r.Kind, w.Kind)
		}
	}
	a := gate.Arrival{Cost: max(r.Cost, 1), Priority: r.Priority, Deadline: gate.Never, Traits: r.traits()}
	if r.Kind != "" && l.gate != nil { // the zero Limiter panics in lock, with a message
		a.Kind, a.Name = l.gate.KindOf(r.Kind), r.Kind
	}
	if end, ok := ctx.Deadline(); ok {
		a.Deadline = max(clock.Monotonic(end).Sub(l.base), 0)
	}
	now := l.now()
	if now >= time.Duration(l.due.Load()) {
		l.poll(now)
	}
	if r.DryRun && l.door.monitor != nil {
		l.door.dryRuns.Add(1)
	}
	would := spillway.Reason(0) // why a dry run refuses the work at the door
	if l.door.sheds.Load() && ctxErr == nil && !l.shut.Load() {
		enforced := Mode(l.mode.Load()) == Enforce && !r.DryRun
		if !l.door.allows(now, &r, enforced) {
			if enforced {
				return l.rejected(r.Priority, l.shed(now, &a))
			}
			would = spillway.Scheduler
		}
	}
	if ctxErr == nil && a.Cost == 1 && a.Traits == 0 && l.ended.Load() == nil {
		if rej := l.memos.repeat(now, &a, mayWait); rej != nil {
			return l.rejected(r.Priority, rej)
		}
	}
	now = l.lock(now)
	mode := Mode(l.mode.Load())
	if ctxErr != nil && (mode == Enforce && !r.DryRun || !l.answersLate(ctxErr)) { // a dry run refuses nothing
		l.gate.Abandoned(r.Priority)
		return l.left(ctxErr, r.Priority, 0)
	}
	if mode == Off && l.gate.ClosedFor() == 0 { // switched off meanwhile
		l.unlock()
		return Permit{}, nil
	}
	if l.tick(now) {
		l.grant(now)
	}
	if mode == Enforce {
		l.relieve(now, l.gate.Short(a.Cost))
	}
	if l.lease.nothing(now) && mode == Enforce && !r.DryRun && l.gate.ClosedFor() == 0 {
		return l.refuseLeased(now, r.Priority)
	}
	var d gate.Decision
	var w *waiter
	switch {
	case mode == DryRun:
		d = l.gate.Force(now, a, mayWait, would)
	case mayWait:
		w = l.waiters.first()
		d = l.gate.Arrive(now, a, &w.Waiter)
	default:
		d = l.gate.Arrive(now, a, nil)
	}
	if would != 0 && mode == Enforce && r.DryRun && d.Action == gate.Admit && d.Reason == 0 {
		d = l.gate.Unenforced(a.Priority, would)
	}
	switch d.Action {
	case gate.Admit:
		p := l.permit(l.start(now, &a, 0))
		l.changed()
		if l.observer.WouldReject != nil && (mode == DryRun || r.DryRun) {
			return l.admittedAnyway(p, r.Priority, d)
		}
		changes := l.release()
		if l.quiet && changes == nil {
			return p, nil
		}
		return l.admitted(p, r.Priority, 0, changes)
	case gate.Reject:
		advice, row := l.gate.RetryAfter(r.Priority), l.rowOf(d)
		if mode == Enforce && !l.over.moving() {
			most := forever
			if l.relieves() {
				most = l.nextLook
			}
			l.memos.keep(l.gate, a, d, mayWait, advice, most, row)
		}
		rej := l.refusal.From(row, advice)
		l.unlock()
		return l.rejected(r.Priority, rej)
	}
	l.waiters.take(a)
	l.grew = now
	if d.Preempted != nil {
		l.drop(d.Preempted, spillway.Preempted)
	}
	l.changed()
	recheck := l.recheckEvery(a.Cost, 0)
	changes := l.release()
	expires := forever // ctx ends the wait
	if l.maxWait < forever && a.Deadline > now+l.maxWait {
		expires = now + l.maxWait
	}
	return l.wait(ctx, w, expires, recheck, changes)
}

// traits returns the gate's flags for the options of the request.
func (r *Request) traits() (t gate.Traits) {
	if r.Long {
		t = gate.Long
	}
	if r.OverShare {
		t |= gate.OverShare
	}
	if r.DryRun {
		t |= gate.DryRun
	}
	return t
}

// grant starts every waiter that may run now, and ends Drain when no work is left.
// Every operation that may have made room calls grant. The caller holds the lock.
func (l *Limiter) grant(now time.Duration) {
	forced := Mode(l.mode.Load()) != Enforce
	for l.gate.Queued() > 0 && !l.leaseOver(now) {
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
		w.slot = l.start(now, &w.arrival, now-w.Since())
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

// changed is called after every operation except a rejection. It forgets the memos,
// which no longer hold, and publishes a changed limit.
func (l *Limiter) changed() {
	if l.memos.live {
		l.memos.forget()
	}
	if n := int64(l.gate.Limit()); n != l.limit.Load() {
		l.relimit(int(n))
	}
}
