package limit

import (
	"math"
	"time"
)

const (
	maxShed    = 1.4             // largest step because of latency or of what was lost, as a logarithm: a quarter of what runs is left
	shedSoon   = 2 * time.Second // pause after shedding in vain; it doubles each time
	shedLatest = time.Minute     // longest pause
	shedSure   = 2               // standard errors by which latency must fall
	lessSure   = 1.5             // standard errors by which throughput must fall, for shedding to be undone
	shedHelped = 0.7             // shedding helped if at most this share of the loss remains
)

// losing reports whether enough of the work is lost to take a trial back or to try a lower limit. Loss
// changes nothing at a limit of 1, or soon after shedding that did not help.
func (a *adaptive) losing(r reading) bool {
	return r.lost >= muchLost && (a.phase == shedding || a.limit > 1 && r.at >= a.sheds.next)
}

// abandonRaise undoes a raise under which much of the work is lost.
func (a *adaptive) abandonRaise(r reading) {
	u := &a.raises
	u.streak, u.stride, a.held = 0, u.stride/2, mean{}
	u.vain++
	u.next = r.at + min(time.Duration(r.lost*float64(r.elapsed)/raiseCost), shedLatest)
	a.cuts.next = r.at
	a.set(r.at, holding, a.trial.from, "much of the work is lost")
}

// abandonCut undoes a cut under which much of the work is lost, although it was not lost before.
func (a *adaptive) abandonCut(r reading) {
	a.held, a.cuts.next = mean{}, r.at+a.cuts.every
	a.cuts.every = min(3*a.cuts.every, cutLatest)
	a.set(r.at, holding, max(a.trial.restore, a.limit), "more is lost with less at once")
}

// shed starts a trial of lower limits because much of the work is lost. The law sheds by its limit. A
// gate that sheds refuses work for lack of another resource, while slots are free.
func (a *adaptive) shed(r reading) {
	if !a.proven {
		a.forget()
	}
	a.held, a.raises.streak = mean{}, 0
	a.trial = trial{from: a.limit, restore: a.limit, to: a.limit, lost: r.lost, done: r.done, doneSize: r.workSize}
	if !r.blind {
		a.trial.before = mean{r.logTime, r.n}
	}
	a.shedStep(r)
}

// shedStep lowers the limit by one step: by the excess of latency over a proven baseline, or else to what
// runs without a queue, at least by the share of lost work. The aim sets the smallest step; for jobs,
// every step has that size.
func (a *adaptive) shedStep(r reading) {
	inFlight := min(a.limit, r.inFlight)
	share := a.aim.shed
	switch {
	case a.aim.jobs:
	case a.proven:
		share = min(share, math.Exp(-min(r.logTime-a.base.value, maxShed)))
	default:
		share = min(share, max(1-r.lost, math.Exp(-maxShed)))
		if n := r.unqueued(); n > 0 {
			share = min(share, max(n, 1)/inFlight)
		}
	}
	a.set(r.at, shedding, inFlight*share, "much of the work is lost")
}

// shedMore lowers the limit further while much of the work is lost. At a limit of 1, under a higher
// enforced limit, or as soon as latency is known not to follow, it calls stopShedding.
func (a *adaptive) shedMore(r reading) {
	if a.limit > 1 && !a.enforcedHigher && (r.open || a.fell(r)) {
		a.shedStep(r)
		return
	}
	a.stopShedding(r)
}

// stopShedding keeps the lower limit if less work is lost, latency fell and throughput did not
// fall. If latency did not fall, no work was waiting. Then the loss does not depend on the limit, as
// with deadlines shorter than the work itself, and fewer losses only mean fewer admissions.
func (a *adaptive) stopShedding(r reading) {
	why := ""
	switch {
	case r.lost > shedHelped*a.trial.lost || !a.fell(r):
		why = "as much is lost at any limit"
	case a.doesLess(r):
		why = "less is done with less at once"
	default:
		a.phase, a.sheds.every, a.raises.vain = holding, shedSoon, 0
		a.raises.next, a.cuts.next = r.at, r.at
		a.loseCapacity(r)
		return
	}
	a.sheds.next = r.at + a.sheds.every
	a.sheds.every = min(2*a.sheds.every, shedLatest)
	a.set(r.at, holding, max(a.trial.restore, a.limit), why)
}

// fell reports whether latency is clearly lower than when shedding began, so that chance alone
// does not keep the limit low. If either latency is unknown, fell returns true.
func (a *adaptive) fell(r reading) bool {
	before := a.trial.before
	if before.n == 0 || r.blind {
		return true
	}
	return before.value-r.logTime >= max(jump, shedSure*a.est.between(before.n, r.n))
}

// doesLess reports whether throughput is clearly lower than before shedding began, although all
// slots are in use. An example is a lock that callers poll: fewer callers find it free less often.
func (a *adaptive) doesLess(r reading) bool {
	t := &a.trial
	return !a.aim.jobs && r.full && r.elapsed > 0 && r.done < t.done*(1-lessSure*math.Sqrt(1/t.doneSize+1/r.workSize))
}
