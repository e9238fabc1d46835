package clusterlimit

import (
	"time"

	"github.com/spillway-go/spillway/clusterlimit/internal/budget"
)

// counts are what Stats shows beside the lease.
type counts struct {
	renewals, failures, conflicts uint64
	standing                      budget.Standing
	err                           error
}

// Stats is a picture of a member. Fields may be added.
type Stats struct {
	Name, Replica string

	// Standing says on what ground it admits work: held; kept, when the engine is
	// away and it goes on with the lease that it had; over, when it admits nothing
	// because its lease has ended; left, after Close.
	Standing string
	Slots    int           // that may be used now
	Rate     int           // that may be admitted in a second now
	For      time.Duration // until then, unless it is renewed; negative: over
	// Token is that of the lease: a later lease of the budget has a higher one. Work may
	// carry it to a backend that refuses what comes with a lower one than it has seen.
	Token uint64

	Concurrency, TotalRate int // in the whole budget; zero: not shared
	Members                int // with a lease, as far as it is known

	Admitted, Refused             uint64 // by Allow
	Renewals, Failures, Conflicts uint64 // attempts that succeeded, that failed, and tries in which another was faster
	Err                           error  // of the latest attempt; nil: it succeeded
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
