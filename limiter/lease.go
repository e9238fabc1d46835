package limiter

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/refusal"
)

// lease is a bound of the limit that another party grants and that expires.
type lease struct {
	row   *refusal.Row // rejections with the cause of the lease; nil: no lease
	slots int
	until time.Duration
}

// over reports whether there is a lease that is without slots or has expired: no work may start.
func (s *lease) over(now time.Duration) bool { return s.row != nil && (s.slots <= 0 || now >= s.until) }

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
	now, end := l.now(), l.at(until)
	now = l.lock(now)
	defer l.unlock()
	l.noteRule() // before the change
	row := l.over.lease.row
	if row == nil || row[0].Cause != cause {
		row = refusal.NewRow(spillway.ReasonBudget, cause)
	}
	l.beginHistory()
	l.over.lease = lease{row, slots, end}
	if until.IsZero() {
		l.over.lease = lease{}
	}
	l.bound()
	l.grant(now)
}

// rowOf returns the rejections for a reason, with the cause of the lease or of the signal that holds the
// limit down.
func (l *Limiter) rowOf(reason spillway.Reason) *refusal.Row {
	for _, row := range [...]*refusal.Row{l.over.lease.row, l.press.row} {
		if row != nil && row.Reason() == reason {
			return row
		}
	}
	return refusal.Of(reason)
}
