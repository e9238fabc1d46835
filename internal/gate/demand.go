package gate

import "time"

// An estimate is wrong if by it nearly all work could be served while most arrivals are lost for
// lack of slots. The cause is a backend that is down, a lease that is over, or a dry run, in which
// the limit may follow the slots in use. A queue in the backend loses a smaller share near its
// capacity.
const (
	nearlyAll  = 1.1
	mostInVain = 0.75
	mostDemand = 100 // reported where nothing is served
	lostKnown  = 20  // ends before Lost reports a share
	lostMeans  = 3   // mean service times for which Lost reports a share
)

// Demand is the work that arrived recently over the work that can be done in the same time. Above
// one, more work arrives than can be served.
func (g *Gate) Demand(now time.Duration) float64 {
	d, rates := g.demand, *g.lately
	d.lately = &rates
	d.roll(now, g.service.part.mean) // on a copy: brings the rates up to date
	asked := g.asked(&d.many, levels-1)
	lately, before := 0.0, 0.0
	for lv, rate := range d.many {
		lately, before = lately+rate, before+d.long[lv]
	}
	if g.inFlight >= g.Limit() { // all slots have been held since the last end
		since := now - max(g.service.last, g.busyAt)
		asked = max(asked, min(lately*since.Seconds()/float64(g.inFlight), mostDemand))
	}
	if asked >= nearlyAll || d.vainShare < mostInVain || lately <= before/2 {
		return asked
	}
	return 1 / max(1-d.vainShare, 1./mostDemand)
}
