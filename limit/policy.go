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

// policy is the law: what a reading makes it do. The functions are below, in the
// order of the table.
//
// A raise needs that every slot is in use; what keeps the law from one, or from a cut,
// is in probe.
var policy = [phases][signs]func(*Adaptive, reading){
	//          usual                above                farAbove               lossy
	starting: {(*Adaptive).double, (*Adaptive).double, (*Adaptive).suspect, (*Adaptive).shed},
	holding:  {(*Adaptive).probe, (*Adaptive).trim, (*Adaptive).suspect, (*Adaptive).shed},
	raising:  {(*Adaptive).judgeRaise, (*Adaptive).judgeRaise, (*Adaptive).judgeRaise, (*Adaptive).giveBack},
	cutting:  {(*Adaptive).judgeCut, (*Adaptive).judgeCut, (*Adaptive).judgeCut, (*Adaptive).shed},
	shedding: {(*Adaptive).stopShedding, (*Adaptive).stopShedding, (*Adaptive).stopShedding, (*Adaptive).shedMore},
}

// How far a step goes. Shares of the limit, or logarithms of latency.
const (
	minStep     = 0.04 // less is not worth a trial
	maxStep     = 0.5  // more would drown a backend near its knee
	halve       = 0.5  // while there is no baseline to go by
	minExcess   = 0.03 // of latency: less is not worth a cut
	jump        = 0.15 // a rise at once beyond this and three standard errors
	trimAtOnce  = 0.15 // an excess below this is trimmed without a trial,
	trimInAll   = 0.2  // but after so much of it in all there is one
	faster      = 0.1  // a fall below the baseline beyond this and three standard errors
	slower      = 0.12 // a change of the baseline that is the backend's own
	clearlySlow = 0.7  // above the baseline: twice as long
	nearlyFull  = 0.75 // of the slots in use: a queue may stand in the backend
	mostBeyond  = 1.3  // times what ran: a raise confirms no more
	minCut      = 0.2
	maxCut      = 0.9
	maxShed     = 1.4 // a quarter is left
	// A backend that degrades raises latency by more than concurrency grew.
	degrades = 1.5
)

// How often a step may be taken.
const (
	raisePause  = 200 * time.Millisecond
	raiseLatest = 5 * time.Second
	raiseCost   = 0.015       // the share of throughput that trials upward may cost
	recallCost  = 0.04        // the same while lost capacity may return,
	recallFor   = time.Minute // which is so long
	recallFrom  = 1.3         // of the limit: capacity lost by less is found by ordinary raises
	firstCut    = time.Second
	cutSoon     = 500 * time.Millisecond
	cutLatest   = 15 * time.Second
	cutShareOf  = 40 // a cut on schedule may take one part in so many of the time
	busyBefore  = 3  // readings in which every slot was in use
	afterSlow   = time.Second
	shedSoon    = 2 * time.Second
	shedLatest  = time.Minute
	shedHelped  = 0.7 // shedding helped if at most this share of the loss remains
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
	} else {
		a.busy = 0
	}
	if losing {
		policy[a.phase][lossy](a, r)
		return
	}
	if a.phase == holding && !a.addHeld(r) {
		return
	}
	policy[a.phase][a.sign(r)](a, r)
}

// losing reports whether so much of the work is lost that less has to be tried. At 1
// there is no less, and not long ago it may have been tried in vain.
func (a *Adaptive) losing(r reading) bool {
	return r.lost >= muchLost && (a.phase == shedding || a.limit > 1 && r.at >= a.sheds.next)
}

// sign compares a reading with the baseline.
func (a *Adaptive) sign(r reading) sign {
	e, excess := &a.est, r.level-a.base.level
	switch err := e.between(r.n, a.base.n); {
	case a.phase == starting && excess > max(jump, 1.4*err):
		return farAbove
	case a.phase != holding || !a.proven:
		return usual
	case excess > jump+3*err:
		return farAbove
	case a.nearlyFull(r) && a.held.level-a.base.level > max(minExcess, 2.4*e.between(a.held.n, a.base.n)):
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
	return r.saturated || r.inFlight >= nearlyFull*min(a.limit, r.enforced)
}

// double grows the limit at the start, until latency rises.
func (a *Adaptive) double(r reading) {
	switch {
	case r.first && r.saturated && a.limit > firstLimit:
		// The scale of the classes changed on the way up.
		a.tryLess(r, halve*a.limit, r.inFlight, mean{r.level, r.n}, false)
		return
	case !r.first:
		if r.level-a.base.level < jump/2 {
			a.flat(mean{r.level, r.n})
		}
		a.proven = a.proven || a.limit > firstLimit || !r.saturated
	}
	if r.saturated && !a.capped(r) {
		a.set(r.at, starting, 2*a.limit, "start: latency is flat")
	}
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
	// The backend became faster. How much of what is left is queueing is not known,
	// so a cut is due soon.
	a.base, a.held = a.held, mean{}
	a.cuts.next, a.cuts.every = min(a.cuts.next, r.at+2*cutSoon), cutSoon
	return false
}

// probe decides what to try at a limit at which nothing is wrong.
func (a *Adaptive) probe(r reading) {
	switch {
	case !a.nearlyFull(r): // time in which slots are free is without a queue
		a.raises.streak = 0
		a.proven = true
		a.flat(mean{r.level, r.n})
	case !a.proven && a.limit > 1:
		// No baseline but this: look at once whether it is one.
		a.tryLess(r, halve*a.limit, r.inFlight, mean{r.level, r.n}, false)
	case !r.saturated || a.capped(r):
		a.raises.streak = 0
	default:
		a.chooseTrial(r, a.held, a.heldAt)
	}
}

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
	a.tryLess(r, from*math.Exp(-excessCut(excess)), inFlight, before, true)
}

// excessCut is by how much to lower the limit, as a logarithm, when latency is so far
// above its baseline: the least that can be needed. What is left of the excess is cut
// next.
func excessCut(excess float64) float64 { return min(max(excess/degrades, minCut), maxCut) }

// flat enters a latency measured without a queue.
func (a *Adaptive) flat(m mean) {
	a.base.add(m.level, m.n, max(maxCohort, math.Pow(1.25*a.est.spread/0.04, 2)))
}

// chooseTrial decides what to try while every slot is in use and nothing is wrong.
func (a *Adaptive) chooseTrial(r reading, level mean, inFlight float64) {
	u, e := &a.raises, &a.est
	switch {
	case r.at >= a.cuts.next && a.limit > 1 && u.streak == 0 && a.busy > busyBefore:
		a.tryLess(r, a.limit*math.Exp(-max(minCut, a.step(1.5, maxStep))), inFlight, level, false)
	case r.at >= u.next:
		// Where the held latency is the baseline, both are one measurement.
		if a.base.n > 0 && math.Abs(level.level-a.base.level) < 2*e.between(level.n, a.base.n) {
			level.add(a.base.level, min(a.base.n, level.n), 2*level.n)
		}
		u.stride = min(max(u.stride, a.finest(level.n)), maxStep)
		to := a.limit * (1 + u.stride)
		if a.recalls(r.at) {
			// One cohort is enough to tell, and the former limit is likely right again.
			to = max(to, min(a.limit*(1+a.step(1, maxStep)), a.former))
			if u.streak > 0 && u.target == 0 {
				to = max(to, a.former)
			}
		}
		if least := 1 + 0.6*(to/a.limit-1); u.target > least*a.limit && u.target < 1.7*a.limit {
			to = u.target
		}
		u.target = 0
		a.tryMore(r, to, inFlight, level)
	}
}

// recalls reports whether capacity was lost of late, and not found again.
func (a *Adaptive) recalls(now time.Duration) bool {
	return a.former > recallFrom*a.limit && now-a.formerAt < recallFor
}

// step is the change of the limit, as a share, that a cohort can tell from none
// by z standard errors.
func (a *Adaptive) step(z, most float64) float64 {
	return min(max(2*z*1.4*a.est.error(0.8*a.est.generation(a.limit)), minStep), most)
}

// finest is the smallest step upward, as a share, that a trial can tell from
// none, when n times are known before it.
func (a *Adaptive) finest(n float64) float64 {
	return max(2*a.est.between(n, 0.8*raiseCohorts*a.est.generation(a.limit)), minStep)
}

func (a *Adaptive) tryMore(r reading, to, inFlight float64, before mean) {
	from := a.limit
	a.set(r.at, raising, max(to, from+1), "is more concurrency free?")
	a.trial = trial{from: from, restore: from, to: a.limit, inFlight: inFlight, before: before}
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
	a.set(r.at, cutting, min(to, from-1), why)
	a.trial = trial{from: from, restore: restore, to: a.limit, inFlight: inFlight, before: before, suspicion: suspicion}
}

// judgeRaise decides about a raise.
func (a *Adaptive) judgeRaise(r reading) {
	t, u := &a.trial, &a.raises
	t.enter(r)
	err := a.est.between(t.after.n, t.before.n)
	v, margin := t.judge(a.aim.raiseTest(), err)
	switch v {
	case undecided:
	case untested: // only what ran is known to be fine
		u.streak = 0
		a.set(r.at, holding, max(t.from, min(t.to, math.Round(mostBeyond*r.inFlight))), "the load is gone")
	case independent:
		u.streak++
		if ran := math.Round(mostBeyond * t.ran.level); ran < a.limit { // more than that was not tried
			a.set(r.at, holding, max(t.from, ran), "no more ran")
		}
		if u.stride *= 2; a.former > 0 && a.limit >= a.former {
			a.former, u.stride = 0, 0 // all of it is back: look carefully for more
		}
		a.trimmed = 0
		a.held, a.heldAt = t.after, t.ran.level
		switch {
		case a.aim.jobs: // latency is the price of it: to trim it would take it back
			a.base, a.proven = t.after, true
		case t.after.level < a.base.level:
			a.flat(t.after)
		}
		a.phase = holding
		u.next = r.at
		a.chooseTrial(r, a.held, a.heldAt)
	case follows:
		u.streak = 0
		switch {
		case !a.recalls(r.at):
			a.good = t.from
		case t.to >= a.former: // not all of it is back: look half way
			a.former = math.Sqrt(t.from * t.to)
		}
		if margin > 1.5*err {
			u.stride /= 2
		} else {
			u.stride *= 1.5
		}
		// Little's law: what latency rose by was waiting.
		more, rose := t.changed()
		knee := t.ran.level * math.Exp(-max(rose+err, 0))
		a.set(r.at, holding, min(max(t.from, knee), t.to), "latency rose with it")
		u.target = t.ran.level * math.Exp(-max(rose, 0)/degrades)
		u.next = r.at + a.raisePause(r, more, rose)
		if u.stride > a.finest(t.before.n) && t.to > t.from+1 {
			u.next = r.at // it went too far, not the wrong way
		}
	}
}

// raisePause is how long to wait after a refused raise, for what it cost in
// throughput.
func (a *Adaptive) raisePause(r reading, more, rose float64) time.Duration {
	lost := 1 - math.Exp(-min(max(rose-more, 0), more)) // throughput, during the trial
	spent := r.took * time.Duration(a.trial.cohorts)
	share := raiseCost
	if a.recalls(r.at) {
		share = recallCost
	}
	return min(max(raisePause, time.Duration(lost*float64(spent)/share), 2*r.took), raiseLatest)
}

// judgeCut decides about a cut.
func (a *Adaptive) judgeCut(r reading) {
	t := &a.trial
	t.enter(r)
	if a.floored {
		t.to = min(a.limit, t.from)
	}
	err := a.est.between(t.after.n, t.before.n)
	switch v, _ := t.judge(a.aim.cutTest(), err); v {
	case undecided:
	case untested: // something else holds it up: there is nothing to cut, and what is measured is the baseline
		a.proven, a.base, a.held = true, t.after, mean{}
		a.set(r.at, holding, max(t.restore, a.limit), "cannot be cut")
		a.raises.next, a.cuts.next = r.at, r.at+cutLatest
	case follows:
		a.keepCut(r, err)
	case independent:
		a.undoCut(r)
	}
}

// keepCut keeps a cut that latency followed: what was cut was waiting.
func (a *Adaptive) keepCut(r reading, err float64) {
	t := &a.trial
	less, fell := t.changed()
	a.held, a.heldAt = t.after, t.ran.level
	a.phase = holding
	a.cuts.every = cutSoon
	if a.raises.target = t.inFlight * math.Exp(-fell/degrades); t.suspicion {
		a.loseCapacity(r)
	}
	rest := t.after.level - a.base.level
	switch {
	case t.suspicion && rest > max(0.06, 2*a.est.error(t.after.n)): // some of it is still there
		a.tryLess(r, a.limit*math.Exp(-excessCut(rest)), t.ran.level, t.after, true)
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

// undoCut restores the limit: latency did not follow, so the slowdown is the backend's.
func (a *Adaptive) undoCut(r reading) {
	t := &a.trial
	start := a.good == 0 && !a.proven && t.restore <= 2*firstLimit
	if !a.recalls(r.at) && t.from >= nearlyFull*t.restore { // with slots free a limit is not confirmed
		a.good = t.restore
	}
	why := "no hidden queue"
	if !a.proven {
		a.proven, a.base = true, t.after
	}
	if math.Abs(t.after.level-a.base.level) > max(slower, 3*a.est.error(t.after.n)) {
		why = "the backend itself is slower"
		a.base = t.after
		a.cuts.every = cutSoon
		if a.aim.jobs { // and if what is slower is a wait, much more may run
			a.raises.stride = maxStep
		}
	} else {
		a.flat(t.after)
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

// giveBack ends a raise from which much of the work is lost.
func (a *Adaptive) giveBack(r reading) {
	a.raises.streak, a.raises.next, a.cuts.next, a.held = 0, r.at, r.at, mean{}
	a.set(r.at, holding, a.trial.from, "much of the work is lost")
}

// shed lowers the limit until less of the work is lost.
func (a *Adaptive) shed(r reading) {
	restore := a.limit
	if a.phase == cutting {
		restore = a.trial.restore
	}
	if !a.proven {
		a.forget()
	}
	a.held, a.raises.streak = mean{}, 0
	a.trial = trial{from: a.limit, restore: restore, to: a.limit, lost: r.lost}
	if !r.blind {
		a.trial.before = mean{r.level, r.n}
	}
	a.less(r)
}

// less takes one step down.
func (a *Adaptive) less(r reading) {
	inFlight := min(a.limit, r.inFlight)
	share := a.aim.shed
	if a.proven && !a.aim.jobs {
		share = min(share, math.Exp(-min(r.level-a.base.level, maxShed)))
	}
	a.set(r.at, shedding, inFlight*share, "much of the work is lost")
}

// shedMore goes on while as much is lost, and back if that is so at any limit.
func (a *Adaptive) shedMore(r reading) {
	if a.limit > 1 && !a.floored {
		a.less(r)
		return
	}
	a.stopShedding(r)
}

// stopShedding stays at a limit at which less is lost. If latency did not fall with
// it, nothing was waiting: then what is lost is lost at any limit, as by deadlines that
// the work misses by itself, and only fewer of those came through.
func (a *Adaptive) stopShedding(r reading) {
	before := a.trial.before
	if r.lost > shedHelped*a.trial.lost || before.n > 0 && !r.blind && before.level-r.level < jump {
		a.sheds.next = r.at + a.sheds.every
		a.sheds.every = min(2*a.sheds.every, shedLatest)
		a.set(r.at, holding, max(a.trial.restore, a.limit), "as much is lost at any limit")
		return
	}
	a.phase, a.sheds.every = holding, shedSoon
	a.raises.next, a.cuts.next = r.at, r.at
	a.loseCapacity(r)
}
