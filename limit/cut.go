package limit

import (
	"math"
	"time"
)

// How far a cut goes. Shares of the limit, or logarithms of latency.
const (
	minExcess     = 0.03 // of latency: less is not worth a cut
	trimAtOnce    = 0.15 // an excess below this is trimmed without a trial,
	trimInAll     = 0.2  // but after so much of it in all there is one
	slower        = 0.12 // a change of the baseline that is the backend's own
	minCut        = 0.2
	maxCut        = 0.9
	maxCutOfShort = 0.33 // where all work takes several times as long as that which is measured
)

// How often one may be tried.
const (
	firstCut   = time.Second
	cutSoon    = 500 * time.Millisecond
	cutLatest  = 15 * time.Second // or later, for cutShareOf
	cutShareOf = 40               // a cut on schedule may take one part in so many of the time
	afterSlow  = time.Second
)

// trim takes a small excess away. Small cuts are not worth a trial each, but a
// baseline that is wrong must not be followed far: not at all at 1, where there is
// nothing to cut and what lasts is the baseline.
func (a *Adaptive) trim(r reading) {
	excess := a.held.level - a.base.level
	from := min(a.limit, math.Round(r.inFlight))
	to := min(from*math.Exp(-excess/1.25), from-1)
	a.trimmed += math.Log(from / max(to, 1))
	if a.limit > 1 && excess < trimAtOnce && a.trimmed < trimInAll {
		a.set(r.at, holding, to, "a little above the baseline")
		a.held = mean{}
		a.raises.next = r.at + raisePause
		return
	}
	a.cutBy(r, excess, a.heldAt, a.held)
}

// suspect cuts the limit because latency rose, to see whether it follows.
func (a *Adaptive) suspect(r reading) {
	inFlight := r.inFlight
	if a.phase == starting {
		// The cohort was admitted while the limit rose; those that met the queue met
		// it at the end.
		a.held, inFlight = mean{}, max(inFlight, a.limit)
	}
	a.cutBy(r, r.level-a.base.level, inFlight, mean{r.level, r.n})
}

func (a *Adaptive) cutBy(r reading, excess, inFlight float64, before mean) {
	a.trimmed = 0
	if !a.proven {
		a.tryLess(r, halve*a.limit, inFlight, before, false)
		return
	}
	from := min(a.limit, math.Round(inFlight))
	a.tryLess(r, from*math.Exp(-a.cutOf(excess)), inFlight, before, true)
}

// costs is by how much all work takes longer, as a logarithm, where that which is
// measured waits and takes longer by excess. A wait is much of a short time, and little of a
// long one: of the mean time in the backend, by Little's law, the wait is a part.
func (a *Adaptive) costs(r reading, excess float64) float64 {
	if r.count == 0 || excess <= 0 {
		return excess
	}
	wait := math.Exp(r.level) - math.Exp(r.level-excess)
	part := wait / (float64(r.took) * r.inFlight / r.count)
	if part >= 1 {
		return excess
	}
	return min(excess, -math.Log(1-part))
}

// cutOf is by how much to lower the limit, as a logarithm, when latency is so far
// above its baseline: the least that can be needed. What is left of the excess is cut
// next. Short work may wait for long work: then its excess says too much, and a cut by
// all of it would cost what is answered.
func (a *Adaptive) cutOf(excess float64) float64 {
	most := maxCut
	if a.est.several() {
		most = maxCutOfShort
	}
	return min(max(excess/degrades, minCut), most)
}

func (a *Adaptive) tryLess(r reading, to, inFlight float64, before mean, suspicion bool) {
	from := min(a.limit, max(math.Round(inFlight), 1))
	if from <= 1 { // nothing waits behind itself: this is latency without a queue
		a.phase = holding
		a.proven, a.base, a.held = true, before, mean{}
		return
	}
	restore, why := a.limit, "is there a hidden queue?"
	if suspicion {
		why = "latency rose: is it our queue?"
	}
	pace, filling := a.pace, a.phase == starting
	a.set(r.at, cutting, min(to, from-1), why)
	a.trial = trial{from: from, restore: restore, to: a.limit, inFlight: inFlight, before: before, paced: pace, suspicion: suspicion, filling: filling}
}

// judgeCut decides about a cut.
func (a *Adaptive) judgeCut(r reading) {
	t := &a.trial
	t.enter(r)
	if a.floored {
		t.to = min(a.limit, t.from)
	}
	err := a.est.between(t.after.n, t.before.n)
	switch v, margin := t.judge(a.aim.cutTest(t.suspicion, t.filling), err, &a.pace, a.rough.spread(a.est.deviation())); v {
	case undecided:
	case untested: // something else holds it up: there is nothing to cut, and what is measured is the baseline
		a.proven, a.base, a.held = true, t.after, mean{}
		a.set(r.at, holding, max(t.restore, a.limit), "cannot be cut")
		a.raises.next, a.cuts.next = r.at, r.at+cutLatest
	case follows:
		a.keepCut(r, err)
	case independent:
		a.undoCut(r, margin)
	}
}

// keepCut keeps a cut that latency followed: what was cut was waiting.
func (a *Adaptive) keepCut(r reading, err float64) {
	t := &a.trial
	less, fell := t.changed()
	a.held, a.heldAt = t.after, t.ran.level
	a.phase = holding
	a.cuts.every, a.raises.vain = cutSoon, 0
	if t.suspicion {
		a.bolds = schedule{next: min(a.bolds.next, r.at+boldSoon), every: boldSoon}
	}
	if a.raises.target = t.inFlight * math.Exp(-fell/degrades); t.suspicion {
		a.loseCapacity(r)
	}
	rest := t.after.level - a.base.level
	if t.longer == 0 && fell-degrades*less > 2*err { // no backend degrades so fast: it was a wait, which is as long for all work
		rest = a.costs(r, rest)
	}
	switch {
	case t.suspicion && rest > max(0.06, 2*a.est.error(t.after.n)): // some of it is still there
		a.tryLess(r, a.limit*math.Exp(-a.cutOf(rest)), t.ran.level, t.after, true)
	case !t.suspicion: // it was queueing, and had gone unnoticed: look further down
		if a.proven = false; fell > 0.7*less { // as it does where all is queueing
			a.tryLess(r, halve*a.limit, t.ran.level, t.after, false)
			return
		}
		// It was kept because it read low, so it is no baseline: take a new one.
		a.forget()
	default:
		if rest < 0 {
			a.flat(t.after)
		}
		if knee := t.inFlight * math.Exp(-(fell + 0.5*err)); knee > a.limit {
			a.set(r.at, holding, min(knee, t.from), "it was queueing down to here")
		}
		a.raises.next, a.cuts.next = r.at, r.at+a.cuts.every
		a.chooseTrial(r, a.held, a.heldAt)
	}
}

// loseCapacity remembers the limit that was right until now.
func (a *Adaptive) loseCapacity(r reading) {
	if a.good > 0 {
		a.former, a.formerAt, a.good = a.good, r.at, 0
	}
}

// undoCut restores the limit. Where latency did not follow, the slowdown is the backend's.
// Where latency followed in part, and less by margin than a cut must bring, the rest of it
// is the price of what more is answered: the baseline is that of the restored limit, or
// the law would take the price for a queue and cut again.
func (a *Adaptive) undoCut(r reading, margin float64) {
	t := &a.trial
	start := a.good == 0 && !a.proven && t.restore <= 2*firstLimit
	if !a.recalls(r.at) && t.from >= nearlyFull*t.restore && t.paced.known() { // with slots free a limit is not confirmed, nor by the fastest alone
		a.good = t.restore
	}
	why := "no hidden queue"
	looked := a.proven && !t.suspicion
	if !a.proven {
		a.proven, a.base = true, t.after
	}
	price := !a.aim.jobs && margin < 0 && t.before.level-t.after.level > minExcess
	switch err := a.est.error(t.after.n); {
	case looked && t.after.level-max(t.before.level, a.base.level) > max(slower, 3*err):
		// It took longer with less at once, as where a backend waits until a batch is full.
		// Neither a baseline nor a reason to look again soon; should the backend have become
		// slower just now, the next reading says so.
		why = "less at once takes longer"
		a.cuts.every = min(3*a.cuts.every, cutLatest)
	case math.Abs(t.after.level-a.base.level) > max(slower, 3*err) && !price:
		why = "the backend itself is slower"
		a.base = t.after
		a.cuts.every, a.raises.vain = cutSoon, 0
		if a.aim.jobs { // and if what is slower is a wait, much more may run
			a.raises.stride = maxStep
		}
	default:
		if price {
			a.base = t.before
		} else {
			a.flat(t.after)
		}
		// Hours in which nothing came are not what the trial cost: its members take
		// what Little's law says, at most ten times that where tails are heavy.
		took := 10 * math.Exp(t.after.level) * (t.after.n/t.ran.level + float64(t.cohorts))
		spent := min(r.took*time.Duration(t.cohorts), time.Duration(min(took, float64(time.Hour))))
		a.cuts.every = max(min(3*a.cuts.every, cutLatest), cutShareOf*spent)
	}
	a.held = mean{}
	next := holding
	if start { // with a baseline at last
		next = starting
	}
	a.set(r.at, next, t.restore, why)
	a.raises.next, a.cuts.next = r.at, r.at+a.cuts.every
	if !a.aim.jobs && t.suspicion && !a.recalls(r.at) { // and the limit is as right as it was: what is slower needs no more trials now
		a.raises.next, a.cuts.next = r.at+afterSlow, r.at+max(3*afterSlow, a.cuts.every)
	}
}
