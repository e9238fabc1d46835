package gate

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/places"
)

// Level is the number of a priority's queue: 0 for the most important.
func Level(p spillway.Priority) int { return level(p) }

// Levels is how many there are.
const Levels = levels

// Repeats reports for whom the rejection d, just given to a, holds: as long as
// the gate sees nothing but rejections, and until that time, other work of the
// same priority and cost would be refused for the same reason if it has no
// deadline or at least needs left. Its owner may refuse it without asking, and tells
// the gate with Repeated.
func (g *Gate) Repeats(a Arrival, d Decision, mayWait bool) (until, needs time.Duration, ok bool) {
	lv := level(a.Priority)
	if g.cfg.MaxRefused > 0 { // the next may be one too many
		return 0, 0, false
	}
	if a.Cost != 1 || a.Traits != 0 || d.Verdict != Reject || d.Reason == spillway.DeadlineTooClose || d.ofKind || g.closed != 0 {
		return 0, 0, false
	}
	needs = 1 // a deadline that has passed is another reason
	if mayWait && g.cfg.QueueSize > 0 && g.service.known() {
		if lv == levels-1 && g.queues[lv].n == 0 {
			return 0, 0, false // the floor may serve work that has more time
		}
		if g.life.helps() {
			return 0, 0, false // work that has more time may use it
		}
		if d.Reason == spillway.QueueFull && a.Deadline != Never {
			return 0, 0, false // with another deadline it might be the wait that is too long
		}
		needs = max(needs, time.Duration(g.predict(lv, 1)+g.service.kinds.longest())+1)
		if a.Deadline == Never { // work with a deadline may wait longer
			needs = Never / 2
		}
	}
	return g.demand.at + demandWindow, needs, true // then rates are taken anew
}

// Repeated counts n arrivals of cost one that were refused like one before.
func (g *Gate) Repeated(p spillway.Priority, reason spillway.Reason, n uint64) {
	lv := level(p)
	g.ledger[lv].rejected[reason] += n
	g.demand.repeat(lv, float64(n), reason)
}

// Refused counts an arrival of cost one that the owner of the gate refused by itself.
func (g *Gate) Refused(now time.Duration, p spillway.Priority, reason spillway.Reason) {
	g.roll(now)
	g.Repeated(p, reason, 1)
}

// RepeatedOf counts n arrivals, those of Repeated once more, for their key.
func (g *Gate) RepeatedOf(key places.Key, n uint64) {
	k := &g.service.kinds.list[g.kind(key, float64(n))]
	k.fresh += float64(n)
	if k.told {
		k.times.add(key.Scale(), n)
	}
}

// repeat enters n refused arrivals of cost one into the current window.
func (d *demand) repeat(lv int, n float64, reason spillway.Reason) {
	d.count[lv] += n
	d.offered += n
	d.turn(n, reason)
	d.back[lv] += n
}
