package gate

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/places"
	"github.com/spillway-go/spillway/internal/priority"
)

// Repeats reports for which other work the rejection d of arrival a holds. Until the time until, and
// as long as the gate rejects all work, the gate would refuse other work of the same priority and
// cost for the same reason. The other work has no deadline, or at least the time needs until its
// deadline. The gate's owner may refuse such work without asking, and reports it with Repeated.
func (g *Gate) Repeats(a Arrival, d Decision, mayWait bool) (until, needs time.Duration, ok bool) {
	lv := priority.Level(a.Priority)
	if g.cfg.MaxRefused > 0 { // the next refusal may exceed the share
		return 0, 0, false
	}
	if a.Cost != 1 || a.Traits != 0 || d.Action != Reject || d.Reason == spillway.DeadlineTooClose || d.ofKind || g.closed != 0 {
		return 0, 0, false
	}
	needs = 1 // work whose deadline has passed is refused for another reason
	if mayWait && g.cfg.QueueSize > 0 && g.service.known() {
		if lv == levels-1 && g.queues[lv].n == 0 {
			return 0, 0, false // the floor may serve work that has more time
		}
		if g.life.helps() {
			return 0, 0, false // work that has more time may wait longer
		}
		if d.Reason == spillway.QueueFull && a.Deadline != Never {
			return 0, 0, false // with another deadline the reason might be WaitTooLong
		}
		needs = max(needs, time.Duration(g.predict(lv, 1)+g.service.kinds.longest())+1)
		if a.Deadline == Never { // work with a deadline may wait longer
			needs = Never / 2
		}
	}
	return g.demand.at + demandWindow, needs, true // the next update of the rates
}

// Repeated counts n arrivals of cost one that were refused by a repeated rejection.
func (g *Gate) Repeated(p spillway.Priority, reason spillway.Reason, n uint64) {
	lv := priority.Level(p)
	g.ledger[lv].rejected[reason] += n
	g.demand.repeat(lv, float64(n), reason)
}

// Refused counts an arrival of cost one that the owner of the gate refused for a reason of its own,
// without its kind: see Shed.
func (g *Gate) Refused(now time.Duration, p spillway.Priority, reason spillway.Reason) {
	g.roll(now)
	g.Repeated(p, reason, 1)
}

// RepeatedOf counts n arrivals for their kind. The same arrivals are also reported to Repeated.
func (g *Gate) RepeatedOf(key places.Key, n uint64) {
	k := &g.service.kinds.list[g.kind(key, float64(n))]
	k.fresh += float64(n)
	if k.named {
		k.times.add(key.Scale(), n)
	}
}

// repeat adds n refused arrivals of cost one to the current window.
func (d *demand) repeat(lv int, n float64, reason spillway.Reason) {
	d.count[lv] += n
	d.offered += n
	d.countRefused(n, reason)
	d.back[lv] += n
}
