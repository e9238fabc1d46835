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
	waits := mayWait && g.cfg.QueueSize > 0 && g.service.known()
	switch {
	case g.cfg.MaxRefused > 0, // the next refusal may exceed the share
		a.Cost != 1, a.Traits != 0, d.Action != Reject, d.Reason == spillway.ReasonDeadlineTooClose, d.ofKind, g.closed != 0,
		waits && lv == levels-1 && g.queues[lv].n == 0,                       // the floor may serve work that has more time
		waits && g.life.helps(),                                              // work that has more time may wait longer
		waits && d.Reason == spillway.ReasonQueueFull && a.Deadline != Never: // with another deadline the reason might be WaitTooLong
		return 0, 0, false
	case !waits:
		needs = 1 // work whose deadline has passed is refused for another reason
	case a.Deadline == Never: // work with a deadline may wait longer
		needs = Never / 2
	default:
		needs = time.Duration(g.predict(lv, 1)+g.service.kinds.longest()) + 1
	}
	return g.demand.at + demandWindow, needs, true // the next update of the rates
}

// Repeated counts n arrivals of cost one that were refused by a repeated rejection.
func (g *Gate) Repeated(p spillway.Priority, reason spillway.Reason, n uint64) {
	lv := priority.Level(p)
	g.demand.arrive(lv, float64(n), float64(n))
	g.refuse(lv, reason, n, 1)
}

// Refused counts an arrival of cost one that the owner of the gate refused for a reason of its own,
// without its kind: see Shed.
func (g *Gate) Refused(now time.Duration, p spillway.Priority, reason spillway.Reason) {
	g.roll(now)
	g.Repeated(p, reason, 1)
}

// Shed counts an arrival that the gate's owner refused for a reason of its own, also for the
// kind of the work. Refused does so for work of cost one and without the kind.
func (g *Gate) Shed(now time.Duration, a *Arrival, reason spillway.Reason) {
	lv, kind := g.came(now, a)
	g.refuse(lv, reason, 1, g.slotsFor(a))
	g.rejectedOf(kind, 1)
}

// refuse counts n refusals of work that asked for the given slots each.
func (g *Gate) refuse(lv int, reason spillway.Reason, n uint64, slots int) {
	g.beginShortage()
	g.rejected[lv][reason] += n
	g.back[lv] += float64(n) * float64(slots)
	g.demand.refuse(float64(n), reason)
}

// RepeatedOf counts n arrivals for their kind. The same arrivals are also reported to Repeated.
func (g *Gate) RepeatedOf(key places.Key, n uint64) {
	kind := g.kind(key, float64(n))
	g.service.kinds.list[kind].came(key, n)
	g.rejectedOf(kind, n)
}
