package clusterlimit

import (
	"time"

	"github.com/spillway-go/spillway/clusterlimit/internal/budget"
)

// counts are the values that a reading has beside the lease.
type counts struct {
	renewals, failures, conflicts uint64
	standing                      budget.Standing
	err                           error
}

// Stats is a snapshot of a member. Fields may be added. [Metrics] counts requests and renewals.
type Stats struct {
	// Standing is the ground on which the member admits work. It is "held" with a lease; "kept" if
	// the engine is away and the member continues with its last lease; "over" if the member admits
	// nothing because its lease has ended; "left" after Close.
	Standing string
	Slots    int   // slots usable now
	Rate     int   // admissions a second possible now
	Members  int   // last known number of members with a lease
	Err      error // error of the latest attempt to renew; nil: it succeeded
}

// Stats returns the state of the lease. It costs less than a microsecond and sends
// nothing.
func (m *Member) Stats() Stats { return m.reading().Stats }

// reading is a snapshot for Stats and for the metrics.
type reading struct {
	Stats
	counts
	left  time.Duration // time until the lease ends, unless it is renewed; negative: over
	token uint64        // of the lease; a member that has lost its lease gets the next one with a higher token

	admitted, refused uint64 // by Allow
}

func (m *Member) reading() reading {
	m.mu.Lock()
	now := m.now()
	b := m.holder.Bound(now)
	_, members := m.holder.Totals()
	r := reading{
		Stats: Stats{
			Standing: b.Standing.String(), Slots: b.Amounts[budget.Slots], Rate: b.Amounts[budget.Rate], Members: members, Err: m.counts.err,
		},
		counts: m.counts, left: b.Until - now, token: m.holder.Token(),
	}
	m.mu.Unlock()
	m.rate.mu.Lock()
	r.admitted, r.refused = m.rate.admitted, m.rate.refused
	m.rate.mu.Unlock()
	return r
}
