package limit

import (
	"math"
)

// sign is what a reading shows, and selects the column of the policy.
type sign uint8

const (
	usual    sign = iota // usual latency, or nothing to compare the latency with
	above                // mean latency at the current limit is slightly above the baseline
	farAbove             // latency is far above the baseline
	lossy                // much of the work is lost
	signs
)

// policy maps a phase and the sign of a reading to an action. The actions are
// in raise.go, cut.go and shed.go; consider is here.
//
// A raise requires that every slot is in use. The conditions for raises and scheduled cuts are
// in consider and chooseTrial.
var policy = [phases][signs]func(*adaptive, reading){
	//          usual                above                farAbove               lossy
	starting: {(*adaptive).grow, (*adaptive).grow, (*adaptive).suspect, (*adaptive).shed},
	holding:  {(*adaptive).consider, (*adaptive).trim, (*adaptive).suspect, (*adaptive).shed},
	raising:  {(*adaptive).judgeRaise, (*adaptive).judgeRaise, (*adaptive).judgeRaise, (*adaptive).abandonRaise},
	cutting:  {(*adaptive).judgeCut, (*adaptive).judgeCut, (*adaptive).judgeCut, (*adaptive).abandonCut},
	shedding: {(*adaptive).stopShedding, (*adaptive).stopShedding, (*adaptive).stopShedding, (*adaptive).shedMore},
}

// Step sizes and thresholds, as shares of the limit or logarithms of latency.
const (
	minStep     = 0.04 // a smaller step is not worth a trial
	maxStep     = 0.5  // a larger step would drown a backend near its knee
	halve       = 0.5  // step of a cut without a proven baseline
	jump        = 0.15 // latency above the baseline by this plus three standard errors is far above
	clearlySlow = 0.7  // above the baseline: twice as long
	shortTime   = 6e6  // nanoseconds; see adaptive.short
	nearlyFull  = 0.75 // share of slots in use from which the backend may hold a queue
	// degrades is the ratio of latency growth to concurrency growth in a backend that degrades.
	degrades   = 1.5
	sureRises  = 2 // consecutive readings far above the baseline, before a cut
	fullBefore = 3 // more consecutive full readings than this come before a scheduled cut
)

// decide runs the policy's action for a reading. A reading without an exact time leads to an action
// only if much of the work is lost, or if its lower bound is clearly above the baseline. While
// holding, latency far above the baseline needs sureRises readings in a row.
func (a *adaptive) decide(r reading) {
	a.adoptHigher(r)
	losing := a.losing(r)
	if r.blind && !losing && !(a.known && r.logTime > a.base.value+jump) {
		return // every time was cut short too early to be informative
	}
	if r.first = !a.known && !r.blind; r.first { // no other measurement exists
		a.known, a.base = true, mean{r.logTime, r.n}
	}
	if r.full {
		a.fullReadings++
		a.pace.add(r, &a.rough)
	} else {
		a.fullReadings, a.pace = 0, pace{}
	}
	if losing {
		policy[a.phase][lossy](a, r)
		return
	}
	if a.phase == holding {
		a.addHeld(r)
	}
	sign := a.sign(r)
	if sign != farAbove || a.phase != holding {
		a.rises = 0
	} else if a.rises++; a.rises < sureRises {
		return // one cohort may contain many long requests by chance
	}
	policy[a.phase][sign](a, r)
}

// sign compares the latency of a reading with the baseline.
func (a *adaptive) sign(r reading) sign {
	e, excess := &a.est, r.logTime-a.base.value
	err := e.between(r.n, a.base.n) * (1 + 2/r.n) // few times give a poor estimate of the spread
	switch {
	case !r.full: // with free slots a lower limit would only refuse work
		return usual
	case a.short(r):
		return usual
	case a.phase == starting && !a.filled(r) && excess > max(jump, 1.4*err):
		return farAbove
	case a.phase != holding || !a.proven:
		return usual
	case excess > jump+3*err:
		return farAbove
	case a.held.value-a.base.value > max(minExcess, 2.4*e.between(a.held.n, a.base.n)):
		return above
	}
	return usual
}

// adoptHigher adopts an enforced limit above the law's own, because the law's limit was not
// tested. An enforced limit below the law's own needs no adoption: the law tries nothing that the
// enforced limit forbids.
func (a *adaptive) adoptHigher(r reading) {
	if a.enforcedHigher = r.enforced >= a.limit+0.5; a.enforcedHigher {
		a.set(r.at, a.phase, r.enforced, "raised by another limit")
	}
}

// enforcedLower reports whether a limit below the law's own was enforced.
func (a *adaptive) enforcedLower(r reading) bool { return r.enforced < a.limit-0.5 }

// mayQueue reports whether our load may have caused a queue in the backend.
func (a *adaptive) mayQueue(r reading) bool {
	return r.full || a.limit > 1 && r.inFlight >= nearlyFull*min(a.limit, r.enforced)
}

// addHeld adds a reading to the latency at the current limit.
func (a *adaptive) addHeld(r reading) {
	if a.held.n == 0 || math.Abs(math.Log(r.inFlight/a.heldAt)) > 0.15 {
		a.held, a.heldAt = mean{r.logTime, r.n}, r.inFlight
	} else {
		before := a.held.n
		a.held.add(r.logTime, r.n, 16*r.n)
		a.heldAt += r.n / (before + r.n) * (r.inFlight - a.heldAt)
	}
}

// consider starts the next trial if one is possible while latency is as usual.
func (a *adaptive) consider(r reading) {
	switch {
	case !a.mayQueue(r): // with free slots only other clients can cause a queue in the backend
		a.raises.streak = 0
		if r.logTime < a.base.value+jump {
			a.proven = true
			a.flat(mean{r.logTime, r.n})
		}
	case !r.full || a.enforcedLower(r):
		a.raises.streak = 0
	case !a.proven && a.limit > 1:
		// The baseline is not proven: test at once whether it contains a queue.
		a.tryLess(r, halve*a.limit, r.inFlight, mean{r.logTime, r.n}, false)
	default:
		a.chooseTrial(r, a.held, a.heldAt)
	}
}

// chooseTrial starts the next trial that is due, while every slot is in use and latency is as usual.
// before is the latency to compare with, measured with inFlight slots in use.
func (a *adaptive) chooseTrial(r reading, before mean, inFlight float64) {
	switch {
	case r.at >= a.cuts.next && a.limit > 1 && a.raises.streak == 0 && a.fullReadings > fullBefore:
		a.tryLess(r, a.limit*math.Exp(-max(minCut, a.finestStep(1.5, maxStep))), inFlight, before, false)
	case r.at >= a.raises.next:
		// If the latency before the raise agrees with the baseline, the baseline refines that latency.
		if a.base.n > 0 && math.Abs(before.value-a.base.value) < 2*a.est.between(before.n, a.base.n) {
			before.add(a.base.value, min(a.base.n, before.n), 2*before.n)
		}
		a.tryMore(r, a.raiseTo(r, before.n), inFlight, before)
	}
}

// short reports whether all work takes less than shortTime in the mean, with at most firstLimit
// slots. Callers of short work gain nothing from a shorter queue in the backend. Short times vary
// more with the machine than with the backend: other work on its processors doubles them for a
// quarter of a second. So latency starts no cut, and only throughput decides a trial. With more
// slots the limit would then grow without end, because the cost of one more slot is too small to
// measure.
func (a *adaptive) short(r reading) bool {
	t := r.slotTime()
	return !a.aim.jobs && a.limit <= firstLimit && t > 0 && t < shortTime
}

// flat adds a latency measured without a queue to the baseline.
func (a *adaptive) flat(m mean) {
	a.base.add(m.value, m.n, max(maxCohort, math.Pow(1.25*a.est.spread/0.04, 2)))
}

// finestStep is the smallest change of the limit, as a share, that one cohort can detect
// at z standard errors. It is between minStep and most.
func (a *adaptive) finestStep(z, most float64) float64 {
	return min(max(2*z*1.4*a.est.error(0.8*a.est.generation(a.limit)), minStep), most)
}
