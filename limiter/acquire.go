package limiter

import (
	"cmp"
	"context"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/carry"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/names"
	"github.com/spillway-go/spillway/internal/refusal"
	"github.com/spillway-go/spillway/limit"
)

// acquire asks the gate, and waits if the gate queues the caller. The functions below are in the order in
// which acquire needs them: before the lock, under the lock and after it. Those that begin under the lock
// unlock.
func (l *Limiter) acquire(ctx context.Context, r *Request) (Permit, error) {
	ctxErr, mode := ctx.Err(), l.Mode()
	if mode == Off && !l.shut.Load() { // nothing is decided and counted
		return Permit{}, ctxErr
	}
	var a gate.Arrival
	l.check()
	l.describe(ctx, r, &a)
	now := l.realNow() // now without a call
	if now < 0 {
		now = l.otherClock()
	}
	l.pollIfDue(now)
	would := spillway.Reason(0) // why a dry run refuses the work at the door
	if ctxErr != nil {
		if !l.answersLate(ctxErr) {
			l.lock(now)
			l.gate.Abandoned(a.Priority)
			l.unlock()
			return Permit{}, ctxErr
		}
	} else if l.door.sheds.Load() || l.memos.live.Load() {
		var rej *spillway.Rejection
		if would, rej = l.unasked(now, &a, mode, !r.noWait); rej != nil {
			return Permit{}, rej
		}
	}

	if !l.mu.TryLock() {
		l.lockContended()
	}
	l.catchUp()
	now = max(l.last, now)
	l.last = now
	mode = l.Mode() // SetMode may have come before the lock
	if ctxErr != nil && enforces(mode, &a) {
		l.gate.Abandoned(a.Priority)
		return Permit{}, l.left(ctxErr, true, a.Priority, nil, 0)
	}
	if !enforces(mode, &a) {
		return l.dryRun(now, &a, mode, !r.noWait, would)
	}
	s := l.running.free
	if s == nil {
		s = l.grow(now)
	}
	if l.ruled || !l.gate.Enter(now, &a, &s.work) {
		return l.decide(ctx, now, &a, !r.noWait)
	}
	l.begin(s)

	p := l.permit(s) // from here on what started does, without a call
	if l.stale() {
		l.changed()
	}
	if !l.quiet {
		l.admitted(p, nil, l.releaseFor(p))
	} else if changes := l.release(); changes != nil {
		l.admitted(p, nil, changes)
	}
	return p, nil
}

// describe describes the work to the gate, with what the context says about the work.
func (l *Limiter) describe(ctx context.Context, r *Request, a *gate.Arrival) {
	if r.Priority == spillway.Normal || r.Cost == 0 || r.Kind == "" {
		if w := carry.From(ctx); w != nil {
			r.Priority, r.Cost = cmp.Or(r.Priority, spillway.Priority(w.Priority)), cmp.Or(r.Cost, w.Cost)
			r.Kind = cmp.Or(r.Kind, w.Kind)
		}
	}
	a.Cost, a.Priority, a.Deadline, a.Traits = max(r.Cost, 1), r.Priority, gate.Never, r.traits()
	if r.Kind != "" {
		a.Name = names.Bounded(r.Kind)
		a.Kind = l.gate.KindOf(a.Name)
	}
	if end, ok := ctx.Deadline(); ok {
		a.Deadline = max(l.at(end), 0)
	}
	if r.DryRun && l.door.monitor != nil {
		l.door.dryRuns.Add(1)
	}
}

// enforces reports whether a refusal of the work takes effect.
func enforces(mode Mode, a *gate.Arrival) bool { return mode == Enforce && a.Traits&gate.DryRun == 0 }

// unasked refuses work that the gate is not asked about: for lack of processors, or as the gate has refused
// such work just now. would is the reason why a dry run refuses.
func (l *Limiter) unasked(now time.Duration, a *gate.Arrival, mode Mode, mayWait bool) (would spillway.Reason, rej *spillway.Rejection) {
	if l.door.sheds.Load() && !l.shut.Load() && !l.door.allows(now, a.Priority, enforces(mode, a)) {
		if enforces(mode, a) {
			return 0, l.shed(now, a)
		}
		would = spillway.ReasonScheduler
	}
	if a.Cost == 1 && a.Traits == 0 && l.ended.Load() == nil {
		if rej = l.memos.repeat(now, a, mayWait); rej != nil {
			l.rejected(a.Priority, rej)
		}
	}
	return would, rej
}

// decide lets the gate decide about work whose refusal takes effect.
func (l *Limiter) decide(ctx context.Context, now time.Duration, a *gate.Arrival, mayWait bool) (Permit, error) {
	l.prepare(now, a.Cost, Enforce)
	if l.over.lease.over(now) && l.gate.ClosedFor() == 0 {
		l.gate.Refused(now, a.Priority, spillway.ReasonBudget)
		return Permit{}, l.refuse(a.Priority, l.over.lease.row, 0, 0) // nobody knows when the next lease comes
	}
	switch d := l.gate.Arrive(now, *a, l.place(mayWait)); d.Action {
	case gate.Admit:
		return l.started(l.start(now), nil)
	case gate.Reject:
		return Permit{}, l.reject(a, true, mayWait, d)
	default:
		return l.queue(ctx, now, a, d)
	}
}

// dryRun asks the gate about work that only a closed intake refuses. would is why the door would have
// refused the work, or zero.
func (l *Limiter) dryRun(now time.Duration, a *gate.Arrival, mode Mode, mayWait bool, would spillway.Reason) (Permit, error) {
	if mode == Off && l.gate.ClosedFor() == 0 { // switched off meanwhile
		l.unlock()
		return Permit{}, nil
	}
	l.prepare(now, a.Cost, mode)
	var d gate.Decision
	if mode == Enforce {
		d = l.gate.Arrive(now, *a, l.place(mayWait))
	} else {
		d = l.gate.Force(now, *a, mayWait, would)
	}
	if d.Action == gate.Reject {
		return Permit{}, l.reject(a, false, mayWait, d)
	}
	if would != 0 && mode == Enforce && d.Reason == 0 {
		d = l.gate.Unenforced(a.Priority, would)
	}
	var rej *spillway.Rejection
	if d.Reason != 0 && l.observer.WouldReject != nil {
		rej = l.refusal.From(l.rowOf(d.Reason), l.gate.WouldRetryAfter(a.Priority))
	}
	return l.started(l.start(now), rej)
}

// prepare does what time has made due before a decision.
func (l *Limiter) prepare(now time.Duration, cost int, mode Mode) {
	if l.tick(now) {
		l.grant(now)
	}
	switch {
	case mode != Enforce:
	case l.gate.Short(cost):
		l.relieve(now)
	default:
		l.gate.ParkShown(now)
	}
}

// place returns the place in the queue for work that may wait, else nil.
func (l *Limiter) place(mayWait bool) *gate.Waiter {
	if !mayWait {
		return nil
	}
	return &l.waiters.first().Waiter
}

// queue waits in the place that the gate has given to the work.
func (l *Limiter) queue(ctx context.Context, now time.Duration, a *gate.Arrival, d gate.Decision) (Permit, error) {
	w := l.waiters.take(*a)
	l.grew = now
	if d.Preempted != nil {
		l.drop(d.Preempted, spillway.ReasonPreempted)
	}
	l.changed()
	recheck := l.recheckEvery(a.Cost, 0)
	expires := forever // ctx ends the wait
	if l.maxWait < forever && a.Deadline > now+l.maxWait {
		expires = now + l.maxWait
	}
	return l.wait(ctx, w, expires, recheck)
}

// reject refuses work as the gate has decided, and remembers the decision for like work that comes soon.
func (l *Limiter) reject(a *gate.Arrival, enforced, mayWait bool, d gate.Decision) *spillway.Rejection {
	advice, row := l.gate.RetryAfter(a.Priority), l.rowOf(d.Reason)
	if enforced && !l.over.moving() {
		most := forever
		if l.aside {
			most = l.nextLook
		}
		l.memos.keep(l.gate, *a, d, mayWait, advice, most, row)
	}
	return l.refuse(a.Priority, row, advice, 0)
}

// refuse returns the rejection of work that the gate has counted as refused.
func (l *Limiter) refuse(p spillway.Priority, row *refusal.Row, advice, waited time.Duration) *spillway.Rejection {
	rej := l.refusal.From(row, advice)
	if waited > 0 {
		own := *rej
		own.Waited = waited
		rej = &own
	}
	l.unlock()
	l.rejected(p, rej)
	return rej
}

// rejected reports r to the observer, without the lock.
func (l *Limiter) rejected(p spillway.Priority, r *spillway.Rejection) {
	if l.observer.Rejected != nil {
		l.observer.Rejected(p, r)
	}
}

// started returns the permit of work that has just started in s. would is the refusal that a dry run has not
// enforced, or nil.
func (l *Limiter) started(s *slot, would *spillway.Rejection) (Permit, error) {
	p := l.permit(s)
	if l.stale() {
		l.changed()
	}
	if !l.quiet {
		l.admitted(p, would, l.releaseFor(p))
	} else if changes := l.release(); changes != nil {
		l.admitted(p, would, changes)
	}
	return p, nil
}

// admitted notifies the observer. If the observer or the law panics, admitted releases the slot.
func (l *Limiter) admitted(p Permit, would *spillway.Rejection, changes []limit.Decision) {
	returned := false
	defer func() {
		if !returned {
			p.Release()
		}
	}()
	l.reportChanges(changes)
	w := &p.s.work
	if would != nil {
		l.observer.WouldReject(w.Priority, would)
	}
	l.raise()
	if l.leakAfter > 0 && !w.Long {
		l.recordSite(p)
	}
	if l.observer.Admitted != nil {
		l.observer.Admitted(w.Priority, w.Waited)
	}
	returned = true
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
