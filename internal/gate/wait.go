package gate

import (
	"time"
)

// unbounded reports whether only its caller ends a wait.
func (g *Gate) unbounded() bool { return g.cfg.MaxWait == Never }

// left is the time until the deadline, for the wait and the work; Never without a deadline.
func left(now, deadline time.Duration) time.Duration {
	if deadline == Never {
		return Never
	}
	return deadline - now
}

// predict is the predicted wait of work of a level, in nanoseconds: the work ahead over the slots
// that the levels above leave free. While the limit is exceeded, the excess must end first, and
// work ends faster because more of it runs.
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

// free is how many slots the levels above leave to a level, at least the share of the floor.
func (g *Gate) free(lv int) float64 {
	slots := float64(g.Limit())
	free := slots
	for i := range lv {
		rate := g.demand.fast[i]
		if g.drains(0) { // a burst is expected to end
			rate = min(rate, g.demand.long[i])
		}
		free -= rate * g.service.hold(i) / 1e9
	}
	return max(free, slots/Floor)
}

// A queue that drains again uses time that callers have, and serves work that would be refused
// otherwise. A standing queue only makes all callers late. Only time can tell the two apart. So at
// first the gate takes an excess of demand for a burst, in which work may wait for as long as eight
// pieces of work take one after the other. Once the excess has lasted for five times as long, forty
// pieces of work, the queue counts as standing. Callers without a deadline may leave sooner, so work
// without a deadline waits half as long, and at most a second.
const (
	burstServices    = 8
	burstLong        = 3                      // multiple of the 95 % quantile: if most work is short, slow work makes the queue
	burstLeast       = 100 * time.Millisecond // such a wait hurts no caller, and rates are not known sooner
	burstAnyway      = time.Second            // longest burst without a deadline
	burstTolerance   = 5
	overdemandMost   = 1.25 // most of Gate.overdemand: above 1, so that a lull by chance does not count as the end
	overdemandReturn = 2    // Gate.overdemand falls this many times as fast as it rises
)

// burst is how long work may wait while the queue is expected to drain, in nanoseconds. Only whether
// left is Never matters, and 0 stands for any deadline. So the result may exceed left.
func (g *Gate) burst(left time.Duration) float64 {
	burst := max(burstServices*g.service.typical(), burstLong*g.service.upper())
	if left == Never {
		burst = min(burst/2, float64(burstAnyway))
	}
	return max(burst, float64(burstLeast))
}

// tolerance is how long demand may exceed the capacity before the queue counts as standing, in
// nanoseconds. left is as in burst.
func (g *Gate) tolerance(left time.Duration) float64 { return burstTolerance * g.burst(left) }

// drains reports whether the queue is still expected to drain. left is as in burst.
func (g *Gate) drains(left time.Duration) bool {
	// Without a deadline the tolerance is lower, otherwise the tolerances are equal.
	return g.overdemand < 1 && (left != Never || g.overdemand*g.tolerance(0) < g.tolerance(left))
}

// longestWait is the longest wait that tolerance and MaxWait allow, in nanoseconds.
func (g *Gate) longestWait(left time.Duration) float64 {
	return min(g.tolerance(left), float64(g.cfg.MaxWait))
}

// roll updates the measurements and overdemand once per window.
func (g *Gate) roll(now time.Duration) {
	if g.lately == &unmeasured && g.demand.seen && g.demand.due(now) {
		first := unmeasured
		g.measureIn(&first)
	}
	passed := g.demand.roll(now, g.service.part.mean)
	if passed == 0 {
		return
	}
	g.service.window()
	g.renew()
	mixed, bears := g.service.kinds.survey(g.demand.at)
	if g.bears = bears; g.life != nil {
		g.life.mixed = mixed
		g.life.fold()
	}
	g.accountRefused(passed)
	if !g.service.known() {
		return
	}
	share := float64(passed) / g.tolerance(0)
	if g.asked(&g.demand.many, levels-1) > 1 {
		g.overdemand = min(g.overdemand+share, overdemandMost)
	} else {
		g.overdemand = max(g.overdemand-overdemandReturn*share, 0)
	}
}

// asked is the demand of the levels 0 to lv, as a multiple of the capacity.
func (g *Gate) asked(rates *[levels]float64, lv int) (part float64) {
	for i, rate := range rates[:lv+1] {
		part += rate * g.service.partOf(i) / 1e9
	}
	return part
}

// bound is how long work of a level may wait, in nanoseconds. While the queue is expected to drain,
// the bound is a burst. Otherwise it is about one service time, and longer for a small excess of
// demand, which is soon served. Only the demand of the level and the levels above counts: lower
// levels are served later. Apart from Never, left matters only if life.helps.
func (g *Gate) bound(lv int, left time.Duration) float64 {
	slots, bound := float64(g.Limit()), g.longestWait(left)
	over := max(g.asked(&g.demand.many, lv), g.asked(&g.demand.few, lv)) - 1
	if over > 0 {
		services := 0.9 + 3/slots // with few slots, each slot needs a few waiters to stay busy between arrivals
		short := max(services*g.service.typical(), 0.8*g.service.upper())
		short *= max(1, 0.06/(over*over))
		if g.drains(left) || !g.demand.settled() {
			short = max(short, g.burst(left))
		}
		// Within a level, no kind may go unserved because it has less time than the other kinds.
		bound = min(bound, short, max(fairPart*g.bears[lv], services*g.service.typical()))
	}
	if g.overdemand > 0 { // demand exceeded the capacity recently
		bound = min(bound, max(fairBurst*g.bears[lv], g.service.typical()))
	}
	if lv > 0 && left < Never && g.life.helps() {
		bound = max(bound, float64(left)-g.life.longestUseful)
	}
	return min(bound, float64(g.cfg.MaxWait))
}

// need is how much time work of a kind must have left when it starts; 0 without recent evidence.
// While the queue is expected to drain, need is the 5 % quantile of the kind. After that, need is
// the 95 % quantile, or less if it is better to let deadlines end long work: see life.
func (g *Gate) need(now time.Duration, kind uint8, deadline time.Duration) float64 {
	k := &g.service.kinds.list[kind]
	switch {
	case !k.recent(now):
		return 0
	case g.drains(0):
		return k.low
	case deadline != Never && g.life.helps():
		return g.life.shortestUseful
	}
	return k.high
}

// floorServes reports whether the floor alone serves the next work of a level within most, although
// higher levels take all other grants.
func (g *Gate) floorServes(lv int, most float64) bool {
	return lv == levels-1 && g.queues[lv].n == 0 && (g.dry == nil || g.dry.waiting[lv] < 1) && Floor*g.service.mean/float64(g.Limit()) < most
}
