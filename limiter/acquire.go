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
// order. The callers of the steps from dryRun on hold the lock.
func (l *Limiter) acquire(ctx context.Context, r *Request) (Permit, error) {
	ctxErr := ctx.Err()
	if l.off() {
		return Permit{}, ctxErr
	}
	var a gate.Arrival
	l.describe(ctx, r, &a)
	now := l.now()
	l.pollIfDue(now) // panics for the zero Limiter
	if ctxErr != nil {
		return l.acquireLate(now, ctxErr, &a, !r.NoWait)
	}
	would := spillway.Reason(0) // why a dry run refuses the work at the door
	if l.refuses() {
		var rej *spillway.Rejection
		if would, rej = l.unasked(now, &a, !r.NoWait); rej != nil {
			return l.rejected(a.Priority, rej)
		}
	}
	if !l.mu.TryLock() {
		l.lockContended()
	}
	l.catchUp()
	now = max(l.last, now)
	l.last = now
	if mode := Mode(l.mode.Load()); mode != Enforce || a.Traits&gate.DryRun != 0 {
		return l.dryRun(now, &a, mode, !r.NoWait, would)
	}
	s := l.running.free
	if s == nil {
		s = l.grow(now)
	}
	if !l.ruled && l.gate.Enter(now, &a, &s.work) {
		l.begin(s)
	} else {
		var p Permit
		var err error
		if s, p, err = l.decide(ctx, now, &a, !r.NoWait); s == nil {
			return p, err
		}
	}
	p := l.permit(s)
	if l.stale() {
		l.changed()
	}
	if changes := l.release(); changes != nil || !l.quiet {
		return l.admitted(p, a.Priority, 0, changes)
	}
	return p, nil
}

// off reports whether nothing is decided and counted.
func (l *Limiter) off() bool { return Mode(l.mode.Load()) == Off && !l.shut.Load() }

// refuses reports whether work may be refused without the lock: see unasked.
func (l *Limiter) refuses() bool { return l.door.sheds.Load() || l.memos.live.Load() }

// acquireLate is acquire for a context that has ended: only a dry run goes on.
func (l *Limiter) acquireLate(now time.Duration, ctxErr error, a *gate.Arrival, mayWait bool) (Permit, error) {
	now = l.lock(now)
	if enforces(Mode(l.mode.Load()), a) || !l.answersLate(ctxErr) {
		l.gate.Abandoned(a.Priority)
		return l.left(ctxErr, a.Priority, 0)
	}
	return l.dryRun(now, a, Mode(l.mode.Load()), mayWait, 0)
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
	if r.Kind != "" && l.gate != nil { // the zero Limiter panics later, with a message
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

// decide lets the gate decide about work whose refusal takes effect. If the work is admitted at once, decide
// returns its slot. Otherwise decide unlocks.
func (l *Limiter) decide(ctx context.Context, now time.Duration, a *gate.Arrival, mayWait bool) (s *slot, p Permit, err error) {
	l.prepare(now, a.Cost, Enforce)
	if l.leaseOver(now) && l.gate.ClosedFor() == 0 {
		p, err = l.refuseLeased(now, a.Priority)
		return nil, p, err
	}
	var w *waiter
	var place *gate.Waiter
	if mayWait {
		w = l.waiters.first()
		place = &w.Waiter
	}
	switch d := l.gate.Arrive(now, *a, place); d.Action {
	case gate.Admit:
		return l.start(now), p, nil
	case gate.Reject:
		p, err = l.reject(a, true, mayWait, d)
	default:
		p, err = l.queue(ctx, now, a, d, w)
	}
	return nil, p, err
}

// dryRun asks the gate about work that only a closed intake refuses, and unlocks. would is why the door
// would have refused the work, or zero.
func (l *Limiter) dryRun(now time.Duration, a *gate.Arrival, mode Mode, mayWait bool, would spillway.Reason) (Permit, error) {
	if mode == Off && l.gate.ClosedFor() == 0 { // switched off meanwhile
		l.unlock()
		return Permit{}, nil
	}
	l.prepare(now, a.Cost, mode)
	var d gate.Decision
	switch {
	case mode == DryRun:
		d = l.gate.Force(now, *a, mayWait, would)
	case mayWait:
		d = l.gate.Arrive(now, *a, &l.waiters.first().Waiter)
	default:
		d = l.gate.Arrive(now, *a, nil)
	}
	if d.Action == gate.Reject {
		return l.reject(a, false, mayWait, d)
	}
	if would != 0 && mode == Enforce && d.Reason == 0 {
		d = l.gate.Unenforced(a.Priority, would)
	}
	p := l.permit(l.start(now))
	l.changed()
	if l.observer.WouldReject != nil {
		return l.admittedAnyway(p, a.Priority, d)
	}
	if changes := l.release(); changes != nil || !l.quiet {
		return l.admitted(p, a.Priority, 0, changes)
	}
	return p, nil
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

// reject refuses work, remembers the decision for like work that comes soon, and unlocks.
func (l *Limiter) reject(a *gate.Arrival, enforced, mayWait bool, d gate.Decision) (Permit, error) {
	advice, row := l.gate.RetryAfter(a.Priority), l.rowOf(d.Reason)
	if enforced && !l.over.moving() {
		most := forever
		if l.aside {
			most = l.nextLook
		}
		l.memos.keep(l.gate, *a, d, mayWait, advice, most, row)
	}
	rej := l.refusal.From(row, advice)
	l.unlock()
	return l.rejected(a.Priority, rej)
}

// queue unlocks, and waits as w.
func (l *Limiter) queue(ctx context.Context, now time.Duration, a *gate.Arrival, d gate.Decision, w *waiter) (Permit, error) {
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

// stale reports whether changed has anything to do.
func (l *Limiter) stale() bool {
	return l.memos.live.Load() || l.limit.Load() != int64(l.gate.Limit())
}

// changed is called after every operation except a rejection, if stale. changed forgets the memos,
// which no longer hold, and publishes a changed limit.
func (l *Limiter) changed() {
	if l.memos.live.Load() {
		l.memos.forget()
	}
	if n := l.gate.Limit(); int64(n) != l.limit.Load() {
		l.relimit(n)
	}
}
