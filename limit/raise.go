package limit

import (
	"math"
	"time"
)

// How far a raise goes, and how often one may be tried.
const (
	mostBeyond   = 2.0 // times what ran: a raise confirms no more
	raisePause   = 200 * time.Millisecond
	raiseLatest  = 5 * time.Second
	raiseCost    = 0.015       // the share of throughput that trials upward may cost
	maxVain      = 5           // refusals in a row, each of which doubles the pause
	recallCost   = 0.04        // the same while lost capacity may return,
	recallFor    = time.Minute // which is so long
	recallFrom   = 1.3         // of the limit: capacity lost by less is found by ordinary raises
	raiseCohorts = 2           // behind most of them
	boldly       = 2.0         // times the limit, at least boldBy more: where small steps gain too little to be seen, a large one shows it
	boldBy       = 6
	boldSoon     = 8 * time.Second  // after less was let in because latency rose,
	boldFirst    = 16 * time.Second // or since the start, and twice as late each time in vain
	boldLatest   = time.Minute
	boldShareOf  = 20 // or later: raises by far may take one part in so many of the time
)

// double grows the limit at the start, until latency rises.
func (a *Adaptive) double(r reading) {
	switch {
	case r.first && r.saturated && a.limit == firstLimit:
		// More came than ended, and that this is a queue of the backend is likely.
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

// raiseTo is the limit to try next, when n times are known at the one held.
func (a *Adaptive) raiseTo(r reading, n float64) float64 {
	u := &a.raises
	u.stride = min(max(u.stride, a.finest(n)), maxStep)
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
	return to
}

// recalls reports whether capacity was lost of late, and not found again.
func (a *Adaptive) recalls(now time.Duration) bool {
	return a.former > recallFrom*a.limit && now-a.formerAt < recallFor
}

// finest is the smallest step upward, as a share, that a trial can tell from
// none, when n times are known before it.
func (a *Adaptive) finest(n float64) float64 {
	return max(2*a.est.between(n, 0.8*raiseCohorts*a.est.generation(a.limit)), minStep)
}

// tryFarMore looks whether far more would be answered.
func (a *Adaptive) tryFarMore(r reading, inFlight float64, before mean) {
	a.tryMore(r, max(boldly*a.limit, a.limit+boldBy), inFlight, before)
	a.trial.bold = true
}

func (a *Adaptive) tryMore(r reading, to, inFlight float64, before mean) {
	from, pace := a.limit, a.pace
	a.set(r.at, raising, max(to, from+1), "is more concurrency free?")
	a.trial = trial{from: from, restore: from, to: a.limit, inFlight: inFlight, before: before, paced: pace}
}

// judgeRaise decides about a raise.
func (a *Adaptive) judgeRaise(r reading) {
	t := &a.trial
	t.enter(r)
	err := a.est.between(t.after.n, t.before.n)
	v, margin := t.judge(a.aim.raiseTest(t.bold), err, &a.pace, a.rough.spread(a.est.deviation()))
	more, rose := t.changed()
	if t.cohorts == 1 && (t.bold || v == independent && rose > a.aim.raiseShare*more && r.n < t.to) {
		t.after, t.ran, v = mean{}, mean{}, undecided // while the slots filled: latency came later than concurrency
	}
	switch v {
	case undecided:
	case untested: // only what ran is known to be fine
		a.raises.streak = 0
		ran := math.Round(mostBeyond * r.inFlight)
		if t.bold { // so far that the slots may not have filled yet
			ran = math.Ceil(t.ran.level)
		}
		a.set(r.at, holding, max(t.from, min(t.to, ran)), "the load is gone")
	case independent:
		a.keepRaise(r, err, margin < -err)
	case follows:
		a.undoRaise(r, err, margin > 1.5*err)
	}
}

// keepRaise keeps a raise that latency did not follow, and tries the next.
func (a *Adaptive) keepRaise(r reading, err float64, clearly bool) {
	t, u := &a.trial, &a.raises
	u.streak++
	u.vain = 0
	if t.bold {
		u.stride, a.cuts.next = maxStep, r.at
		a.bolds.next, a.bolds.every = r.at+boldSoon, boldSoon
	}
	if ran := math.Round(mostBeyond * t.ran.level); ran < a.limit { // more than that was not tried
		a.set(r.at, holding, max(t.from, ran), "no more ran")
	}
	if u.stride *= 2; a.former > 0 && a.limit >= a.former {
		a.former, u.stride = 0, 0 // all of it is back: look carefully for more
	}
	a.trimmed = 0
	a.held, a.heldAt = t.after, t.ran.level
	switch {
	case a.aim.jobs || clearly && t.after.level > a.base.level+minExcess && t.followed(): // latency is the price of it: to trim it would take it back
		a.base, a.proven = t.after, true
	case t.before.level-t.after.level > max(faster, 2*err): // though more ran: it hides what the raise did
		u.streak = 0
		a.becameFaster(r.at, t.after)
	case t.after.level < a.base.level:
		a.flat(t.after)
	}
	a.phase = holding
	u.next = r.at
	a.chooseTrial(r, a.held, a.heldAt)
}

// laterBold puts off the next raise by far, since one was in vain: for longer where it
// took longer.
func (a *Adaptive) laterBold(r reading) {
	spent := r.took * time.Duration(a.trial.cohorts)
	a.bolds.next = r.at + max(a.bolds.every, boldShareOf*spent)
	a.bolds.every = min(2*a.bolds.every, boldLatest)
}

// undoRaise takes a raise back because latency rose with it, clearly or not.
func (a *Adaptive) undoRaise(r reading, err float64, clearly bool) {
	t, u := &a.trial, &a.raises
	u.streak = 0
	if t.bold {
		_, rose := t.changed()
		knee := t.ran.level * math.Exp(-max(rose+err, 0))
		a.set(r.at, holding, min(max(t.from, knee), t.to), "far more at once is not answered faster")
		a.laterBold(r)
		return
	}
	switch {
	case !a.recalls(r.at):
		a.good = t.from
	case t.to >= a.former: // not all of it is back: look half way
		a.former = math.Sqrt(t.from * t.to)
	}
	if clearly {
		u.stride /= 2
	} else {
		u.stride *= 1.5
	}
	// Little's law: what latency rose by was waiting.
	more, rose := t.changed()
	knee := t.ran.level * math.Exp(-max(rose+err, 0))
	a.set(r.at, holding, min(max(t.from, knee), t.to), "latency rose with it")
	if a.limit == t.from && !a.recalls(r.at) {
		a.pace = t.paced // nothing has changed
	}
	u.target = t.ran.level * math.Exp(-max(rose, 0)/degrades)
	u.next = r.at + a.raisePause(r, more, rose)
	u.vain++
	if u.stride > a.finest(t.before.n) && t.to > t.from+1 {
		u.next = r.at // it went too far, not the wrong way
	}
}

// raisePause is how long to wait after a refused raise, for what it cost in
// throughput. It doubles while the answer stays the same and no lost capacity is
// expected back, since callers wait longer during a trial.
func (a *Adaptive) raisePause(r reading, more, rose float64) time.Duration {
	lost := 1 - math.Exp(-min(max(rose-more, 0), more)) // throughput, during the trial
	spent := r.took * time.Duration(a.trial.cohorts)
	share := raiseCost
	if a.recalls(r.at) {
		share = recallCost
	}
	pause := max(raisePause, time.Duration(lost*float64(spent)/share), 2*r.took)
	if !a.recalls(r.at) {
		pause <<= min(a.raises.vain, maxVain)
	}
	return min(pause, raiseLatest)
}
