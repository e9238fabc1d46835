package limiter

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/refusal"
)

// lease is a bound that somebody else grants, and that ends by itself.
type lease struct {
	held  bool
	slots int
	until time.Duration
	cause string
	row   *refusal.Row
}

// nothing reports whether the lease leaves no slot at all.
func (s *lease) nothing(now time.Duration) bool { return s.held && (s.slots <= 0 || now >= s.until) }

// SetLease bounds the limit by what somebody else grants for a time: a share of a
// budget that replicas have in common. Until then at most so many slots are used, fewer
// if the law or a bound says so. From then on, or with no slots, nothing starts until it
// is called again: each arrival compares the time, so that a process that was paused
// notices at its first. Callers that already wait go on waiting.
//
// Work refused for it is rejected as Budget with this cause, and Config.MaxRefused does
// not let it in. Work that costs more than all slots runs alone, as ever. A dry run
// admits all, and takes a lease without slots for one of a single slot.
func (l *Limiter) SetLease(slots int, until time.Time, cause string) {
	now := l.lock(l.now())
	defer l.unlock()
	l.overruled = l.overruledBy() // until now
	row := l.lease.row
	if row == nil || cause != l.lease.cause {
		row = refusal.NewRow(spillway.Budget, cause)
	}
	l.lease = lease{true, slots, until.Sub(l.base), cause, row}
	l.over.leased, l.over.lessor = max(slots, 1), cause
	l.bound()
	l.grant(now)
}

// EndLease takes the bound of SetLease away.
func (l *Limiter) EndLease() {
	now := l.lock(l.now())
	defer l.unlock()
	l.overruled = l.overruledBy()
	l.lease = lease{}
	l.over.leased, l.over.lessor = 0, ""
	l.bound()
	l.grant(now)
}

// leaseOver reports whether no work may start for want of a lease. The caller holds the
// lock.
func (l *Limiter) leaseOver(now time.Duration) bool {
	return l.lease.nothing(now) && Mode(l.mode.Load()) == Enforce
}

// refuseLeased refuses an arrival for want of a lease, and unlocks. There is no advice:
// when a lease will come nobody here knows.
func (l *Limiter) refuseLeased(now time.Duration, p spillway.Priority) (Permit, error) {
	l.gate.Refused(now, p, spillway.Budget)
	rej := l.refusal.From(l.lease.row, 0)
	l.unlock()
	return l.rejected(p, rej)
}

// rowOf returns the rejections to refuse with.
func (l *Limiter) rowOf(d gate.Decision) *refusal.Row {
	if d.Reason == spillway.Budget && l.lease.row != nil && l.gate.Rule() == gate.LeaseRules {
		return l.lease.row
	}
	return l.press.row(d)
}
