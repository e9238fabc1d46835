package limiter

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/clock"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/refusal"
)

// lease is a bound of the limit that another party grants and that expires.
type lease struct {
	held  bool
	slots int
	until time.Duration
	cause string
	row   *refusal.Row
}

// nothing reports whether there is a lease that is without slots or has expired.
func (s *lease) nothing(now time.Duration) bool { return s.held && (s.slots <= 0 || now >= s.until) }

// SetLease bounds the limit by a lease: a share of a budget that replicas have in common,
// granted until a time. Before until, the limit is at most slots, and lower if the law or
// a bound is lower. From until on, or without slots, no work starts until SetLease is
// called. Each arrival compares the time, so that a process that was paused
// notices the expiry at its first arrival. Callers that already wait continue to wait.
//
// Work refused because of the lease is rejected as Budget with the given cause, and
// Config.MaxRefused does not admit such work. Work that costs more than all slots runs
// alone, as without a lease. A dry run admits all work, and treats a lease without slots
// as a lease of one slot. The zero until ends the lease, and with it the bound. An until
// without a monotonic reading, such as a decoded one, counts from the wall clock of the call;
// a later change of the wall clock changes nothing.
func (l *Limiter) SetLease(slots int, until time.Time, cause string) {
	now := l.lock(l.now())
	defer l.unlock()
	l.overruled = l.overruledBy() // before the change
	row := l.lease.row
	if row == nil || cause != l.lease.cause {
		row = refusal.NewRow(spillway.Budget, cause)
	}
	l.lease, l.over.leased, l.over.lessor = lease{}, 0, ""
	if !until.IsZero() {
		l.lease = lease{true, slots, clock.Monotonic(until).Sub(l.base), cause, row}
		l.over.leased, l.over.lessor = max(slots, 1), cause
	}
	l.bound()
	l.grant(now)
}

// leaseOver reports whether the lease lets no work start now. The caller holds the lock.
func (l *Limiter) leaseOver(now time.Duration) bool {
	return l.lease.nothing(now) && Mode(l.mode.Load()) == Enforce
}

// refuseLeased refuses an arrival because of the lease, and unlocks. The rejection has no
// advice, because the limiter does not know when the next lease comes.
func (l *Limiter) refuseLeased(now time.Duration, p spillway.Priority) (Permit, error) {
	l.gate.Refused(now, p, spillway.Budget)
	rej := l.refusal.From(l.lease.row, 0)
	l.unlock()
	return l.rejected(p, rej)
}

// rowOf returns the row of rejections for the decision d.
func (l *Limiter) rowOf(d gate.Decision) *refusal.Row {
	if d.Reason == spillway.Budget && l.lease.row != nil && l.gate.Rule() == gate.LeaseRules {
		return l.lease.row
	}
	return l.press.row(d)
}
