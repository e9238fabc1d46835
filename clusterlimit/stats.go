package clusterlimit

import (
	"time"

	"github.com/spillway-go/spillway/clusterlimit/internal/budget"
)

// counts are the values that Stats reports beside the lease.
type counts struct {
	renewals, failures, conflicts uint64
	standing                      budget.Standing
	err                           error
}

// Stats is a snapshot of a member. Fields may be added.
type Stats struct {
	Name, Replica string

	// Standing is the ground on which the member admits work. It is "held" with a lease; "kept" if
	// the engine is away and the member continues with its last lease; "over" if the member admits
	// nothing because its lease has ended; "left" after Close.
	Standing string
	Slots    int           // slots usable now
	Rate     int           // admissions a second possible now
	For      time.Duration // time until the lease ends, unless it is renewed; negative: over
	// Token is the token of the lease. A member that has lost its lease gets the next one with a
	// higher token: work that began with a lower one may run beside that of other members. Tokens
	// of different members say nothing about each other.
	Token uint64

	Concurrency, TotalRate int // of the whole budget; zero: not shared
	Members                int // last known number of members with a lease

	Admitted, Refused             uint64 // by Allow
	Renewals, Failures, Conflicts uint64 // successful attempts, failed attempts, and tries that another member won
	Err                           error  // error of the latest attempt; nil: it succeeded
}

// Stats returns the state of the lease. It costs less than a microsecond and sends
// nothing.
func (m *Member) Stats() Stats {
	m.mu.Lock()
	now := m.now()
	b := m.holder.Bound(now)
	totals, members := m.holder.Totals()
	s := Stats{
		Name: m.cfg.Name, Replica: m.cfg.Replica,
		Standing: b.Standing.String(), Slots: b.Amounts[budget.Slots], Rate: b.Amounts[budget.Rate], For: b.Until - now, Token: m.holder.Token(),
		Concurrency: totals[budget.Slots], TotalRate: totals[budget.Rate], Members: members,
		Renewals: m.counts.renewals, Failures: m.counts.failures, Conflicts: m.counts.conflicts, Err: m.counts.err,
	}
	m.mu.Unlock()
	m.rate.mu.Lock()
	s.Admitted, s.Refused = m.rate.admitted, m.rate.refused
	m.rate.mu.Unlock()
	return s
}
