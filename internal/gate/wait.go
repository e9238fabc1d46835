package gate

import (
	"math"
	"time"
)

// left is how long work with that deadline may take, its wait included.
func (g *Gate) left(now, deadline time.Duration) time.Duration {
	if deadline == Never {
		return g.cfg.MaxWait + time.Duration(g.service.high)
	}
	return deadline - now
}

// predict is how long work of a level would wait, in nanoseconds: the work
// ahead of it over the slots that the levels above leave free.
func (g *Gate) predict(lv, cost int) float64 {
	work := float64(cost) * g.service.hold(lv)
	for i := range lv + 1 {
		work += float64(g.queues[i].cost) * g.service.hold(i)
	}
	return work / g.free(lv)
}

// free is how many slots the levels above leave to a level, at least the floor's.
func (g *Gate) free(lv int) float64 {
	slots := float64(g.Limit())
	free := slots
	for i := range lv {
		rate := g.demand.fast[i]
		if g.stood < longPatience { // what drains: a burst is expected to end
			rate = min(rate, g.demand.long[i])
		}
		free -= rate * g.service.hold(i) / 1e9
	}
	return max(free, slots/Floor)
}

// A queue that drains again costs time that its callers have, and serves what
// would be refused otherwise. One that stands only makes everybody late. Which of
// the two it is, only time tells: work may wait as long as its deadline allows
// until demand has exceeded the capacity for patience times the time it has.
const (
	patience     = 4
	longPatience = 4 * time.Second            // with deadlines far away
	stoodMost    = longPatience + time.Second // a lull has to be longer than noise
	stoodFalls   = 2                          // seconds, in one in which demand is below the capacity
)

// demandOf enters an arrival, and every window looks whether the queue stands.
func (g *Gate) demandOf(now time.Duration, lv, cost int) {
	passed := g.demand.arrive(now, lv, cost)
	if passed == 0 {
		return
	}
	g.life.fold()
	g.book(passed)
	if g.asked(&g.demand.slow, levels-1) > float64(g.Limit()) {
		g.stood = min(g.stood+passed, stoodMost)
	} else {
		g.stood = max(g.stood-stoodFalls*passed, 0)
	}
}

// asked is how many slots the levels down to lv ask for.
func (g *Gate) asked(rates *[levels]float64, lv int) (slots float64) {
	for i, rate := range rates[:lv+1] {
		slots += rate * g.service.hold(i) / 1e9
	}
	return slots
}

// standing is how long the queue may make anybody wait who has so much time left:
// no bound while the queue can drain, about one service time while it cannot.
func (g *Gate) standing(lv int, left time.Duration, ends bool) float64 {
	if !g.demand.settled() || g.stood < longPatience && g.stood/patience < left {
		return math.Inf(1)
	}
	slots := float64(g.Limit())
	over := g.asked(&g.demand.slow, levels-1)/slots - 1
	if over <= 0 {
		return math.Inf(1)
	}
	// A few slots need a few waiters each to stay busy between arrivals. The most
	// important work gets more, unless it alone is far too much.
	services := 0.9 + 3/slots
	if lv == 0 && g.asked(&g.demand.slow, 0) < 1.3*slots {
		services += 0.5
	}
	bound := max(services*g.service.mean, 0.8*g.service.high)
	bound *= max(1, 0.06/(over*over))
	if lv > 0 && ends && g.life.helps() {
		bound = max(bound, float64(left)-g.life.enough)
	}
	return bound
}

// need is how much time a start must have left: about what nearly all work takes,
// or less where work is better ended than finished.
func (g *Gate) need(deadline time.Duration) float64 {
	if deadline != Never && g.life.helps() {
		return g.life.least
	}
	return g.service.high
}

// floorServes reports whether the floor alone serves the next of a level in
// time, although higher levels take all the rest.
func (g *Gate) floorServes(lv int, most float64) bool {
	return lv == levels-1 && g.queues[lv].n == 0 && Floor*g.service.mean/float64(g.Limit()) < most
}
