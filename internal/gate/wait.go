package gate

import (
	"time"
)

// left is how long work with that deadline may take, its wait included.
func left(now, deadline time.Duration) time.Duration {
	if deadline == Never {
		return Never
	}
	return deadline - now
}

// predict is how long work of a level would wait, in nanoseconds: the work ahead of
// it over the slots that the levels above leave free. Where more runs than may, so
// much has to end before, and ends sooner.
func (g *Gate) predict(lv, cost int) float64 {
	work := float64(cost) * g.service.hold(lv)
	for i := range lv + 1 {
		work += g.queues[i].work + g.queues[i].unknown*g.service.hold(i)
	}
	if excess := g.inFlight - g.Limit(); excess > 0 {
		work = (work + float64(excess)*g.service.mean) * float64(g.Limit()) / float64(g.inFlight)
	}
	return work / g.free(lv)
}

// free is how many slots the levels above leave to a level, at least the floor's.
func (g *Gate) free(lv int) float64 {
	slots := float64(g.Limit())
	free := slots
	for i := range lv {
		rate := g.demand.fast[i]
		if g.patient(0) { // a burst is expected to end
			rate = min(rate, g.demand.long[i])
		}
		free -= rate * g.service.hold(i) / 1e9
	}
	return max(free, slots/Floor)
}

// A queue that drains again costs time that its callers have, and serves what
// would be refused otherwise. One that stands only makes all of them late. Which of
// the two it is, only time tells. So work may wait a burst, as long as eight pieces
// of work take one after the other, until demand has exceeded the capacity for five
// times that: forty pieces of work are enough to know. A deadline says how long its
// caller would wait; work without one waits half as long, and no second.
const (
	burstServices  = 8
	burstLong      = 3                      // of those that take longer than nearly all: among short work these make the queue
	burstLeast     = 100 * time.Millisecond // hurts no caller, and rates are not known sooner
	burstAnyway    = time.Second            // most without a deadline
	burstPatience  = 5
	patienceSpent  = 1.25 // at most: a lull has to be longer than noise
	patienceReturn = 2    // times as fast as it is spent
)

// burst is how long work that has so much time left may wait while the queue is
// expected to drain, in nanoseconds. It may be more than what is left.
func (g *Gate) burst(left time.Duration) float64 {
	burst := max(burstServices*g.service.typical(), burstLong*g.service.upper())
	if left == Never {
		burst = min(burst/2, float64(burstAnyway))
	}
	return max(burst, float64(burstLeast))
}

// patience is how long demand may exceed the capacity before the queue is expected
// to stand.
func (g *Gate) patience(left time.Duration) float64 { return burstPatience * g.burst(left) }

// patient reports whether patience is left.
func (g *Gate) patient(left time.Duration) bool {
	return g.spent*g.patience(0) < g.patience(left)
}

// longest is the most that a queue may make work wait.
func (g *Gate) longest(left time.Duration) float64 {
	return min(g.patience(left), float64(g.cfg.MaxWait))
}

// demandOf enters an arrival.
func (g *Gate) demandOf(now time.Duration, lv, cost int) {
	g.roll(now)
	g.demand.arrive(lv, cost)
}

// roll looks every window whether the queue stands.
func (g *Gate) roll(now time.Duration) {
	passed := g.demand.roll(now, g.service.part.mean)
	if passed == 0 {
		return
	}
	g.service.window()
	if !g.follows {
		g.renew()
	}
	g.life.fold()
	g.life.mixed, g.bears = g.service.kinds.survey(g.demand.at)
	g.book(passed)
	if !g.service.known() {
		return
	}
	spent := float64(passed) / g.patience(0)
	if g.asked(&g.demand.many, levels-1) > 1 {
		g.spent = min(g.spent+spent, patienceSpent)
	} else {
		g.spent = max(g.spent-patienceReturn*spent, 0)
	}
}

// asked is what the levels down to lv ask for, as a part of what the gate can do.
func (g *Gate) asked(rates *[levels]float64, lv int) (part float64) {
	for i, rate := range rates[:lv+1] {
		part += rate * g.service.partOf(i) / 1e9
	}
	return part
}

// bound is how long work of a level may wait, in nanoseconds: a burst while the
// queue is expected to drain, about one service time while it is not, and more the
// less demand exceeds the capacity, because a small excess is soon made up for. The demand
// is that of the level and those above: what is below is served after it.
// left matters only where work is better ended by its deadline than finished.
func (g *Gate) bound(lv int, left time.Duration) float64 {
	slots, bound := float64(g.Limit()), g.longest(left)
	over := max(g.asked(&g.demand.many, lv), g.asked(&g.demand.few, lv)) - 1
	if over > 0 {
		services := 0.9 + 3/slots // a few slots need a few waiters each to stay busy between arrivals
		short := max(services*g.service.typical(), 0.8*g.service.upper())
		short *= max(1, 0.06/(over*over))
		if g.patient(left) || !g.demand.settled() {
			short = max(short, g.burst(left))
		}
		// Among equals no kind is to get nothing because it has less time than the others.
		bound = min(bound, short, max(fairPart*g.bears[lv], services*g.service.typical()))
	}
	if g.spent > 0 { // of late more was asked for than can be done
		bound = min(bound, max(fairBurst*g.bears[lv], g.service.typical()))
	}
	if lv > 0 && left < Never && g.life.helps() {
		bound = max(bound, float64(left)-g.life.enough)
	}
	return min(bound, float64(g.cfg.MaxWait))
}

// need is how much time a start of work of a kind must have left, as far as times of the
// kind are evidence for now. While nothing is short it is what little of it can do
// without; while more is asked for than can be done, what nearly all of it takes, or less
// where work is better ended than finished.
func (g *Gate) need(now time.Duration, kind uint8, deadline time.Duration) float64 {
	k := &g.service.kinds.list[kind]
	switch {
	case !k.recent(now):
		return 0
	case g.patient(0):
		return k.low
	case deadline != Never && g.life.helps():
		return g.life.least
	}
	return k.high
}

// floorServes reports whether the floor alone serves the next of a level in
// time, although higher levels take all the rest.
func (g *Gate) floorServes(lv int, most float64) bool {
	return lv == levels-1 && g.queues[lv].n == 0 && Floor*g.service.mean/float64(g.Limit()) < most
}
