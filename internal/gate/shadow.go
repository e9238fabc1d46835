package gate

import (
	"time"

	"github.com/spillway-go/spillway/limit"
)

// shadow is the gate that a dry run does not enforce. What it would have refused is
// not in it, although it runs; it serves as many at once as the limit allows, each
// for as long as work takes that does not share its slot. Both must be kept apart
// from what is measured: once a queue stands in the backend, more than the limit runs
// at all times and all of it takes long, but that is what a limit would prevent.
type shadow struct {
	watch  *limit.Passive // estimates how long work would take
	slots  float64        // in use and waited for
	at     time.Duration
	forced uint64 // the latest work that was not asked
}

// Force admits work whatever the limit says, unless the intake is closed: a dry
// run counts what it would have refused, and enforces nothing. mayWait is
// whether the work could have waited.
func (g *Gate) Force(now time.Duration, a Arrival, mayWait bool) Decision {
	lv := level(a.Priority)
	g.counts.Offered++
	g.demandOf(now, lv, g.asks(a))
	if g.closed != 0 {
		g.counts.RejectedBy[g.closed]++
		return Decision{Verdict: Reject, Reason: g.closed}
	}
	if g.shadow == nil {
		g.shadow = &shadow{watch: limit.NewPassive(), slots: float64(g.inFlight), at: now}
	}
	if !g.shadowAdmits(now, lv, a, mayWait) {
		g.counts.WouldReject++
	}
	g.admit(now, a)
	if !a.Long {
		g.shadow.forced = g.seq
		g.shadow.watch.Admit(now, g.load())
	}
	return Decision{Verdict: Admit}
}

// shadowAdmits decides about work as if the limit were enforced.
func (g *Gate) shadowAdmits(now time.Duration, lv int, a Arrival, mayWait bool) bool {
	s, slots, cost := g.shadow, float64(g.Limit()), float64(a.Cost)
	if g.service.known() {
		s.slots -= min(s.slots, min(s.slots, slots)*float64(now-s.at)/g.service.mean)
	} else {
		s.slots = min(s.slots, float64(g.inFlight))
	}
	s.at = now
	if over := s.slots + cost - slots; over > 0 && s.slots >= 0.5 {
		left := left(now, a.Deadline)
		most := min(g.bound(lv, left), float64(left)-g.need(a.Deadline))
		late := g.service.known() && over*g.service.mean/slots > most
		if !mayWait || late || over > float64(g.cfg.QueueSize) {
			return false
		}
	}
	s.slots += float64(a.held())
	return true
}

// shadowed is how long ended work would have taken, had the limit been enforced.
func (g *Gate) shadowed(s limit.Sample) time.Duration {
	if s.Seq > g.shadow.forced { // enforced again
		g.shadow = nil
		return s.End - s.Start
	}
	g.shadow.watch.Observe(s, g.load())
	return g.shadow.watch.Within(s, g.Limit())
}
