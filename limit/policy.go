package limit

import (
	"math"
	"time"
)

// sign is what a reading says, apart from the numbers.
type sign uint8

const (
	usual    sign = iota // latency as it should be, or no baseline to say otherwise
	above                // a little above the baseline, for as long as the limit has been held
	farAbove             // far above it
	lossy                // much of the work is lost
	signs
)

// policy is the law: what a reading makes it do. The functions are
// in raise.go, cut.go and shed.go; probe is here.
//
// A raise needs that every slot is in use; what keeps the law from one, or from a cut,
// is in probe.
var policy = [phases][signs]func(*Adaptive, reading){
	//          usual                above                farAbove               lossy
	starting: {(*Adaptive).double, (*Adaptive).double, (*Adaptive).suspect, (*Adaptive).shed},
	holding:  {(*Adaptive).probe, (*Adaptive).trim, (*Adaptive).suspect, (*Adaptive).shed},
	raising:  {(*Adaptive).judgeRaise, (*Adaptive).judgeRaise, (*Adaptive).judgeRaise, (*Adaptive).giveBack},
	cutting:  {(*Adaptive).judgeCut, (*Adaptive).judgeCut, (*Adaptive).judgeCut, (*Adaptive).putBack},
	shedding: {(*Adaptive).stopShedding, (*Adaptive).stopShedding, (*Adaptive).stopShedding, (*Adaptive).shedMore},
}

// How far a step goes. Shares of the limit, or logarithms of latency.
const (
	minStep     = 0.04 // less is not worth a trial
	maxStep     = 0.5  // more would drown a backend near its knee
	halve       = 0.5  // while there is no baseline to go by
	jump        = 0.15 // a rise at once beyond this and three standard errors
	faster      = 0.1  // a fall below the baseline beyond this and three standard errors
	clearlySlow = 0.7  // above the baseline: twice as long
	nearlyFull  = 0.75 // of the slots in use: a queue may stand in the backend
	// A backend that degrades raises latency by more than concurrency grew.
	degrades   = 1.5
	sureRises  = 2 // readings in a row far above the baseline, before a cut
	busyBefore = 3 // readings in which every slot was in use, before a cut on schedule
)

// decide does what the policy says.
func (a *Adaptive) decide(r reading) {
	a.adoptHigher(r)
	losing := a.losing(r)
	if r.blind && !losing && !(a.known && r.level > a.base.level+jump) {
		return // all were cut short before they said anything
	}
	if r.first = !a.known && !r.blind; r.first { // this cohort is all there is
		a.known, a.base = true, mean{r.level, r.n}
	}
	if r.saturated {
		a.busy++
		a.pace.add(r, &a.rough)
	} else {
		a.busy, a.pace = 0, pace{}
	}
	if losing {
		policy[a.phase][lossy](a, r)
		return
	}
	if a.phase == holding && !a.addHeld(r) {
		return
	}
	sign := a.sign(r)
	if sign != farAbove || a.phase != holding {
		a.rises = 0
	} else if a.rises++; a.rises < sureRises {
		return // chance may fill one cohort with what takes long of itself
	}
	policy[a.phase][sign](a, r)
}

// sign compares a reading with the baseline.
func (a *Adaptive) sign(r reading) sign {
	e, excess := &a.est, r.level-a.base.level
	err := e.between(r.n, a.base.n) * (1 + few/(5*r.n)) // the spread of a few times is not known well
	switch {
	case !r.saturated: // whatever latency is, a lower limit would only refuse
		return usual
	case a.phase == starting && excess > max(jump, 1.4*err):
		return farAbove
	case a.phase != holding || !a.proven:
		return usual
	case excess > jump+3*err:
		return farAbove
	case a.held.level-a.base.level > max(minExcess, 2.4*e.between(a.held.n, a.base.n)):
		return above
	}
	return usual
}

// adoptHigher makes a higher limit that was enforced the law's own: a lower one has not
// been tried. A lower limit needs no such care; nothing is tried that it forbids.
func (a *Adaptive) adoptHigher(r reading) {
	if a.floored = r.enforced >= a.limit+0.5; a.floored {
		a.set(r.at, a.phase, r.enforced, "raised by another limit")
	}
}

// capped reports whether a lower limit was enforced.
func (a *Adaptive) capped(r reading) bool { return r.enforced < a.limit-0.5 }

// nearlyFull reports whether a queue may have stood in the backend because of our load.
func (a *Adaptive) nearlyFull(r reading) bool {
	return r.saturated || a.limit > 1 && r.inFlight >= nearlyFull*min(a.limit, r.enforced)
}

// addHeld adds a reading of the held limit. It returns false if that made a new
// baseline.
func (a *Adaptive) addHeld(r reading) bool {
	if a.held.n == 0 || math.Abs(math.Log(r.inFlight/a.heldAt)) > 0.15 {
		a.held, a.heldAt = mean{r.level, r.n}, r.inFlight
	} else {
		before := a.held.n
		a.held.add(r.level, r.n, 16*r.n)
		a.heldAt += r.n / (before + r.n) * (r.inFlight - a.heldAt)
	}
	if a.base.level-a.held.level <= max(faster, 3*a.est.between(a.held.n, a.base.n)) {
		return true
	}
	a.becameFaster(r.at, a.held)
	a.held = mean{}
	return false
}

// becameFaster makes a latency the baseline that cannot be but the backend's own
// change. How much of it is queueing is not known, so a cut is due soon.
func (a *Adaptive) becameFaster(now time.Duration, m mean) {
	a.base = m
	a.raises.vain = 0
	a.cuts.next, a.cuts.every = min(a.cuts.next, now+2*cutSoon), cutSoon
}

// probe decides what to try at a limit at which nothing is wrong.
func (a *Adaptive) probe(r reading) {
	switch {
	case !a.nearlyFull(r): // time in which slots are free is without a queue, unless the backend has one of others
		a.raises.streak = 0
		if r.level < a.base.level+jump {
			a.proven = true
			a.flat(mean{r.level, r.n})
		}
	case !r.saturated || a.capped(r):
		a.raises.streak = 0
	case !a.proven && a.limit > 1:
		// No baseline but this: look at once whether it is one.
		a.tryLess(r, halve*a.limit, r.inFlight, mean{r.level, r.n}, false)
	default:
		a.chooseTrial(r, a.held, a.heldAt)
	}
}

// chooseTrial decides what to try while every slot is in use and nothing is wrong.
func (a *Adaptive) chooseTrial(r reading, level mean, inFlight float64) {
	switch {
	case r.at >= a.bolds.next && a.raises.streak == 0 && a.busy > busyBefore:
		a.tryFarMore(r, inFlight, level)
	case r.at >= a.cuts.next && a.limit > 1 && a.raises.streak == 0 && a.busy > busyBefore:
		a.tryLess(r, a.limit*math.Exp(-max(minCut, a.step(1.5, maxStep))), inFlight, level, false)
	case r.at >= a.raises.next:
		// Where the held latency is the baseline, both are one measurement.
		if a.base.n > 0 && math.Abs(level.level-a.base.level) < 2*a.est.between(level.n, a.base.n) {
			level.add(a.base.level, min(a.base.n, level.n), 2*level.n)
		}
		a.tryMore(r, a.raiseTo(r, level.n), inFlight, level)
	}
}

// flat enters a latency measured without a queue.
func (a *Adaptive) flat(m mean) {
	a.base.add(m.level, m.n, max(maxCohort, math.Pow(1.25*a.est.spread/0.04, 2)))
}

// step is the change of the limit, as a share, that a cohort can tell from none
// by z standard errors.
func (a *Adaptive) step(z, most float64) float64 {
	return min(max(2*z*1.4*a.est.error(0.8*a.est.generation(a.limit)), minStep), most)
}
