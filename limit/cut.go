package limit

import (
	"math"
	"time"
)

// Sizes of cuts, as logarithms of the limit or of latency.
const (
	minExcess  = 0.03 // a smaller excess of latency is not worth a cut
	trimAtOnce = 0.15 // an excess below this is trimmed without a trial
	trimInAll  = 0.2  // sum of trims after which a trial is due
	slower     = 0.12 // change of latency beyond which the backend itself changed
	minCut     = 0.2
	maxCut     = 0.9
)

// Pauses between cuts.
const (
	firstCut   = time.Second
	cutSoon    = 500 * time.Millisecond
	cutLatest  = 15 * time.Second // longest pause, unless cutShareOf requires more
	cutShareOf = 40               // scheduled cuts may take one part in 40 of the time
)

// trim removes a small excess of latency. Small cuts are not worth a trial each. After several
// trims a trial checks the baseline, which may be wrong. At a limit of 1 nothing can be cut, so
// the lasting latency becomes the baseline.
func (a *adaptive) trim(r reading) {
	excess := a.held.value - a.base.value
	from := min(a.limit, math.Round(r.inFlight))
	to := min(from*math.Exp(-excess/1.25), from-1)
	a.trimmed += math.Log(from / max(to, 1))
	if a.limit > 1 && excess < trimAtOnce && a.trimmed < trimInAll {
		a.set(r.at, holding, to, "a little above the baseline")
		a.held = mean{}
		a.raises.next = r.at + raiseSoon
		return
	}
	a.cutBy(r, excess, a.heldAt, a.held)
}

// suspect cuts the limit because latency rose, to test whether latency follows.
func (a *adaptive) suspect(r reading) {
	inFlight := r.inFlight
	if a.phase == starting {
		// The cohort was admitted while the limit rose, so only its last members met the queue.
		a.held, inFlight = mean{}, max(inFlight, a.limit)
	}
	a.cutBy(r, r.logTime-a.base.value, inFlight, mean{r.logTime, r.n})
}

func (a *adaptive) cutBy(r reading, excess, inFlight float64, before mean) {
	a.trimmed = 0
	if !a.proven {
		a.tryLess(r, halve*a.limit, inFlight, before, false)
		return
	}
	from := min(a.limit, math.Round(inFlight))
	a.tryLess(r, from*math.Exp(-a.cutOf(excess)), inFlight, before, true)
}

// cutOf returns the cut for an excess of latency over the baseline, both as logarithms. The next cut
// removes what is left of the excess.
func (a *adaptive) cutOf(excess float64) float64 {
	return min(max(excess/degrades, minCut), maxCut)
}

func (a *adaptive) tryLess(r reading, to, inFlight float64, before mean, suspicion bool) {
	from := min(a.limit, max(math.Round(inFlight), 1))
	if from <= 1 { // a single piece of work cannot queue: before is a baseline
		a.phase = holding
		a.proven, a.base, a.held = true, before, mean{}
		return
	}
	restore, why := a.limit, "is there a hidden queue?"
	if suspicion {
		why = "latency rose: is it our queue?"
	}
	pace := a.pace
	a.set(r.at, cutting, min(to, from-1), why)
	a.trial = trial{from: from, restore: restore, to: a.limit, ranBefore: inFlight, before: before, paceBefore: pace, short: a.short(r), suspicion: suspicion}
}

// judgeCut decides about a cut.
func (a *adaptive) judgeCut(r reading) {
	t := &a.trial
	t.enter(r, a.short(r))
	if a.enforcedHigher {
		t.to = min(a.limit, t.from)
	}
	err := a.est.between(t.after.n, t.before.n)
	switch v, margin := t.judge(a.aim.criteriaOf(t), err, &a.pace, a.rough.spread(a.est.deviation())); v {
	case undecided:
	case untested: // the slots in use did not fall with the limit: the measured latency is the baseline
		a.proven, a.base, a.held = true, t.after, mean{}
		a.set(r.at, holding, max(t.restore, a.limit), "cannot be cut")
		a.raises.next, a.cuts.next = r.at, r.at+cutLatest
	case follows:
		a.keepCut(r, err)
	case independent:
		a.undoCut(r, margin)
	}
}

// keepCut keeps a cut that latency followed: the cut removed waiting.
func (a *adaptive) keepCut(r reading, err float64) {
	t := &a.trial
	less, fell := t.changed()
	a.fullAt = r.at
	a.held, a.heldAt = t.after, t.ranAfter.value
	a.phase = holding
	a.cuts.every, a.raises.vain = cutSoon, 0
	if t.suspicion {
		a.loseCapacity(r)
	}
	rest := t.after.value - a.base.value
	switch {
	case t.suspicion && !a.short(r) && rest > max(0.06, 2*a.est.error(t.after.n)): // some excess is left
		a.tryLess(r, a.limit*math.Exp(-a.cutOf(rest)), t.ranAfter.value, t.after, true)
	case !t.suspicion: // an unnoticed queue: try a lower limit
		if a.proven = false; fell > 0.7*less { // nearly all was queueing
			a.tryLess(r, halve*a.limit, t.ranAfter.value, t.after, false)
			return
		}
		// The latency is biased low, because a low reading kept the cut: measure a new baseline.
		a.forget()
	default:
		if rest < 0 {
			a.flat(t.after)
		}
		a.raises.next, a.cuts.next = r.at, r.at+a.cuts.every
		a.chooseTrial(r, a.held, a.heldAt)
	}
}

// loseCapacity records the limit that was confirmed before capacity was lost.
func (a *adaptive) loseCapacity(r reading) {
	if a.confirmed > 0 {
		a.former, a.formerAt, a.confirmed = a.confirmed, r.at, 0
	}
}

// undoCut restores the limit. If latency did not follow, the backend itself is slower. If latency
// followed in part, but missed the bound by margin, the higher latency is the price of higher
// throughput. The latency at the restored limit then becomes the baseline; otherwise the law
// would take the price for a queue and cut again.
func (a *adaptive) undoCut(r reading, margin float64) {
	t := &a.trial
	start := a.confirmed == 0 && !a.proven && t.restore <= 2*firstLimit
	// A confirmed limit needs slots in use and a known pace.
	if !a.recalls(r.at) && t.from >= nearlyFull*t.restore && t.paceBefore.known() {
		a.confirmed = t.restore
	}
	why := "no hidden queue"
	scheduled := a.proven && !t.suspicion
	if !a.proven {
		a.proven, a.base = true, t.after
	}
	price := !a.aim.jobs && margin < 0 && t.before.value-t.after.value > minExcess
	switch err := a.est.error(t.after.n); {
	case scheduled && t.after.value-max(t.before.value, a.base.value) > max(slower, 3*err):
		// Latency rose under a lower limit, as in a backend that waits until a batch is full.
		// The latency is no baseline, and another cut is not urgent. If the backend itself became
		// slower, the next reading shows it.
		why = "less at once takes longer"
		a.cuts.every = min(3*a.cuts.every, cutLatest)
	case math.Abs(t.after.value-a.base.value) > max(slower, 3*err) && !price:
		why = "the backend itself is slower"
		a.base = t.after
		a.cuts.every, a.raises.vain = cutSoon, 0
		if a.aim.jobs { // if a wait in the backend became longer, much more work may run at once
			a.raises.stride = maxStep
		}
	default:
		if price {
			a.base = t.before
		} else {
			a.flat(t.after)
		}
		// Hours without arrivals are no cost of the trial. The cost is bounded by the duration
		// from Little's law, times ten for heavy tails.
		elapsed := 10 * math.Exp(t.after.value) * (t.after.n/t.ranAfter.value + float64(t.cohorts))
		trialTime := min(r.elapsed*time.Duration(t.cohorts), time.Duration(min(elapsed, float64(time.Hour))))
		a.cuts.every = max(min(3*a.cuts.every, cutLatest), cutShareOf*trialTime)
	}
	a.held = mean{}
	next := holding
	if start { // the start goes on with a proven baseline
		next = starting
	}
	a.set(r.at, next, t.restore, why)
	a.raises.next, a.cuts.next = r.at, r.at+a.cuts.every
}
