package gate

import "time"

// An estimate that says that nearly all could be served, while most of what arrives comes
// to nothing for want of slots, is wrong: of a backend that is down, of a lease that
// is over, or in a dry run, where the limit may be what happens to be in flight. What
// a queue in the backend loses near its capacity is less than that.
const (
	nearlyAll  = 1.1
	mostInVain = 0.75
	mostDemand = 100 // told where nothing is done
	lostKnown  = 20  // ends, before a share of them is told
	lostMeans  = 3   // for how many times the mean it is told
)

// Demand is the work that arrived lately over what can be done in that time: above one,
// more comes than can be served.
func (g *Gate) Demand(now time.Duration) float64 {
	d := g.demand
	d.roll(now, g.service.part.mean) // on a copy: brings the rates up to date
	asked := g.asked(&d.slow, levels-1)
	var lately, before, held float64
	for lv, rate := range d.slow {
		lately, before, held = lately+rate, before+d.long[lv], held+rate*g.service.hold(lv)
	}
	if g.inFlight >= g.Limit() { // since something ended, all slots have been held
		since := now - max(g.service.last, g.busyAt)
		asked = max(asked, min(lately*since.Seconds()/float64(g.inFlight), mostDemand))
	}
	if asked >= nearlyAll || d.vain < mostInVain || lately <= before/2 {
		return asked
	}
	if held /= 1e9 * float64(g.Limit()); held > nearlyAll && g.inFlight == 0 { // none of it may run
		return held
	}
	return 1 / max(1-d.vain, 1./mostDemand)
}
