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

// acquire asks the gate, and waits if the gate queues the caller. The steps of acquire follow, in their
// order.
func (l *Limiter) acquire(ctx context.Context, r Request) (Permit, error) {
	ctxErr, mayWait := ctx.Err(), !r.NoWait
	if Mode(l.mode.Load()) == Off && !l.shut.Load() {
		return Permit{}, ctxErr
	}
	var a gate.Arrival
	l.describe(ctx, &r, &a)
	now := l.now()
	l.pollIfDue(now)
	would := spillway.Reason(0) // why a dry run refuses the work at the door
	if ctxErr == nil {
		var rej *spillway.Rejection
		if would, rej = l.unasked(now, &a, mayWait); rej != nil {
			return l.rejected(a.Priority, rej)
		}
	}
	now = l.lock(now)
	mode := Mode(l.mode.Load())
	enforced := enforces(mode, &a) // a dry run refuses nothing
	if ctxErr != nil && (enforced || !l.answersLate(ctxErr)) {
		l.gate.Abandoned(a.Priority)
		return l.left(ctxErr, a.Priority, 0)
	}
	if mode == Off && l.gate.ClosedFor() == 0 { // switched off meanwhile
		l.unlock()
		return Permit{}, nil
	}
	l.prepare(now, &a, mode)
	if enforced && l.lease.nothing(now) && l.gate.ClosedFor() == 0 {
		return l.refuseLeased(now, a.Priority)
	}
	switch d, w := l.ask(now, &a, mode, mayWait, would); d.Action {
	case gate.Admit:
		return l.begin(now, &a, mode, &d)
	case gate.Reject:
		return l.reject(&a, mode, mayWait, &d)
	default:
		return l.queue(ctx, now, &a, &d, w)
	}
}

// describe describes the work to the gate, with what the context says about the work.
func (l *Limiter) describe(ctx context.Context, r *Request, a *gate.Arrival) {
	if r.Priority == spillway.Normal || r.Cost == 0 || r.Kind == "" {
		if w := carry.From(ctx); w != nil {
			r.Priority, r.Cost = cmp.Or(r.Priority, spillway.Priority(w.Priority)), cmp.Or(r.Cost, int(w.Cost))
			r.Kind = cmp.Or(r.Kind, w.Kind)
		}
	}
	a.Cost, a.Priority, a.Deadline, a.Traits = max(r.Cost, 1), r.Priority, gate.Never, r.traits()
	if r.Kind != "" && l.gate != nil { // the zero Limiter panics in lock, with a message
		a.Kind, a.Name = l.gate.KindOf(r.Kind), r.Kind
	}
	if end, ok := ctx.Deadline(); ok {
		a.Deadline = max(clock.Monotonic(end).Sub(l.base), 0)
	}
	if r.DryRun && l.door.monitor != nil {
		l.door.dryRuns.Add(1)
	}
}

// unasked refuses work without the lock and the gate: for lack of processors, or as the gate has refused
// such work just now. would is the reason why a dry run refuses.
func (l *Limiter) unasked(now time.Duration, a *gate.Arrival, mayWait bool) (would spillway.Reason, rej *spillway.Rejection) {
	if l.door.sheds.Load() && !l.shut.Load() {
		enforced := enforces(Mode(l.mode.Load()), a)
		if !l.door.allows(now, a.Priority, enforced) {
			if enforced {
				return 0, l.shed(now, a)
			}
			would = spillway.Scheduler
		}
	}
	if a.Cost == 1 && a.Traits == 0 && l.ended.Load() == nil {
		rej = l.memos.repeat(now, a, mayWait)
	}
	return would, rej
}

// enforces reports whether a refusal of the work takes effect.
func enforces(mode Mode, a *gate.Arrival) bool { return mode == Enforce && a.Traits&gate.DryRun == 0 }

// prepare does what time has made due before a decision. The caller holds the lock.
func (l *Limiter) prepare(now time.Duration, a *gate.Arrival, mode Mode) {
	if l.tick(now) {
		l.grant(now)
	}
	if mode == Enforce {
		l.relieve(now, l.gate.Short(a.Cost))
	}
}

// ask returns the gate's decision. If the decision is to wait, w is the waiter. The caller holds the lock.
func (l *Limiter) ask(now time.Duration, a *gate.Arrival, mode Mode, mayWait bool, would spillway.Reason) (d gate.Decision, w *waiter) {
	switch {
	case mode == DryRun:
		return l.gate.Force(now, *a, mayWait, would), nil
	case mayWait:
		w = l.waiters.first()
		d = l.gate.Arrive(now, *a, &w.Waiter)
	default:
		d = l.gate.Arrive(now, *a, nil)
	}
	if would != 0 && mode == Enforce && a.Traits&gate.DryRun != 0 && d.Action == gate.Admit && d.Reason == 0 {
		d = l.gate.Unenforced(a.Priority, would)
	}
	return d, w
}

// begin starts admitted work, and unlocks.
func (l *Limiter) begin(now time.Duration, a *gate.Arrival, mode Mode, d *gate.Decision) (Permit, error) {
	p := l.permit(l.start(now, a, 0))
	l.changed()
	if l.observer.WouldReject != nil && (mode == DryRun || a.Traits&gate.DryRun != 0) {
		return l.admittedAnyway(p, a.Priority, *d)
	}
	changes := l.release()
	if l.quiet && changes == nil {
		return p, nil
	}
	return l.admitted(p, a.Priority, 0, changes)
}

// reject refuses work, remembers the decision for like work that comes soon, and unlocks.
func (l *Limiter) reject(a *gate.Arrival, mode Mode, mayWait bool, d *gate.Decision) (Permit, error) {
	advice, row := l.gate.RetryAfter(a.Priority), l.rowOf(*d)
	if mode == Enforce && !l.over.moving() {
		most := forever
		if l.relieves() {
			most = l.nextLook
		}
		l.memos.keep(l.gate, *a, *d, mayWait, advice, most, row)
	}
	rej := l.refusal.From(row, advice)
	l.unlock()
	return l.rejected(a.Priority, rej)
}

// queue unlocks, and waits as w.
func (l *Limiter) queue(ctx context.Context, now time.Duration, a *gate.Arrival, d *gate.Decision, w *waiter) (Permit, error) {
	l.waiters.take(*a)
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
