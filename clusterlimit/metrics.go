package clusterlimit

import (
	"github.com/spillway-go/spillway/clusterlimit/internal/budget"
	"github.com/spillway-go/spillway/metrics"
)

const (
	ofSlots = iota
	ofRate
	ofStanding
	ofLease
	ofMembers
	ofRequests
	ofRenewals
)

var described = []metrics.Metric{
	ofSlots:    {Name: "spillway.budget.slots", Kind: metrics.UpDownCounter, Unit: "{slot}", Help: "Slots of the budget that this replica may use now."},
	ofRate:     {Name: "spillway.budget.rate", Kind: metrics.UpDownCounter, Unit: "{request}", Help: "Requests that this replica may admit in a second now."},
	ofStanding: {Name: "spillway.budget.standing", Kind: metrics.UpDownCounter, Unit: "{member}", Help: "Members by the ground on which they admit: 1 at that of a member (held, kept, over or left), 0 at the others.", Labels: []string{"standing"}},
	ofLease:    {Name: "spillway.budget.lease", Kind: metrics.Gauge, Unit: "s", Help: "How long the lease lasts unless it is renewed; 0 when it is over, or was given back."},
	ofMembers:  {Name: "spillway.budget.members", Kind: metrics.Gauge, Unit: "{member}", Help: "Members with a lease, as far as this one knows."},
	ofRequests: {Name: "spillway.budget.requests", Kind: metrics.Counter, Unit: "{request}", Help: "Requests that asked Allow, by result: admitted or refused. What a bound limiter refuses is among its own.", Labels: []string{"result"}},
	ofRenewals: {Name: "spillway.budget.renewals", Kind: metrics.Counter, Unit: "{attempt}", Help: "Attempts to renew the lease, by result: renewed, failed, or conflict, where another member was faster and it was tried again.", Labels: []string{"result"}},
}

// Metrics returns a member's metrics, with the label budget set to Config.Name. A reading costs
// some microseconds and sends nothing.
func Metrics(m *Member) *metrics.Source {
	return metrics.New("budget", m.cfg.Name, described, func() []metrics.Sample { return samples(m.reading()) })
}

func samples(s reading) []metrics.Sample {
	var all []metrics.Sample
	put := func(metric int, n float64, labels ...string) {
		all = append(all, metrics.Sample{Metric: metric, Value: n, Labels: labels})
	}
	put(ofSlots, float64(s.Slots))
	put(ofRate, float64(s.Rate))
	for one := budget.Held; one <= budget.Left; one++ {
		value := 0.0
		if one.String() == s.Standing {
			value = 1
		}
		put(ofStanding, value, one.String())
	}
	lease := max(s.left.Seconds(), 0)
	if s.Standing == budget.Left.String() {
		lease = 0
	}
	put(ofLease, lease)
	put(ofMembers, float64(s.Members))
	put(ofRequests, float64(s.admitted), "admitted")
	put(ofRequests, float64(s.refused), "refused")
	put(ofRenewals, float64(s.renewals), "renewed")
	put(ofRenewals, float64(s.failures), "failed")
	put(ofRenewals, float64(s.conflicts), "conflict")
	return all
}
