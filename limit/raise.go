package limit

import (
	"math"
	"time"
)

// How far a raise goes, and how often one may be tried.
const (
	mostBeyond   = 2.0 // a raise confirms at most this multiple of the slots in use
	raiseSoon    = 200 * time.Millisecond
	raiseLatest  = 5 * time.Second
	raiseCost    = 0.015           // share of throughput that raises may cost
	maxVain      = 5               // most refusals in a row that double the pause
	recallCost   = 0.04            // raiseCost while lost capacity may return
	recallFor    = time.Minute     // how long lost capacity may return
	recallFrom   = 1.3             // multiple of the limit; ordinary raises recover a smaller loss
	recallMost   = 4               // multiple of the limit, most at once
	raiseCohorts = 2               // cohorts behind most raises
	leastStart   = 8               // lowest limit of the start
	headroom     = 2               // multiple of the most in flight that may be allowed without a test
	peakAfter    = 3 * time.Second // time from the first admission before which no peak is known
	peakLasts    = time.Minute     // term of a peak
	startPart    = 0.5             // of reading.unqueued: a mean of the fastest quarter may contain a queue
)

// grow doubles the limit at the start, until latency rises.
func (a *adaptive) grow(r reading) {
	switch {
	case a.filled(r):
		// Arrivals outran completions, so a queue in the backend is likely. The start goes on from a limit at
		// which there is hardly any. Doubling soon corrects a limit that is too low.
		a.forget()
		a.proven = true
		a.set(r.at, starting, max(math.Ceil(startPart*r.unqueued()), leastStart), "start: with less waiting")
		return
	case !r.first:
		if r.logTime-a.base.value < jump/2 {
			a.flat(mean{r.logTime, r.n})
		}
		a.proven = a.proven || a.limit > firstLimit || !r.full
	}
	switch {
	case !r.full:
		a.lowerUntested(r)
	case !a.enforcedLower(r):
		a.set(r.at, starting, 2*a.limit, "start: latency is flat")
	}
}

// lowerUntested lowers a limit that no work has tested to a multiple of the most in flight of late. A backend
// that becomes slow would otherwise be flooded up to that limit. TCP validates its congestion window
// the same way (RFC 7661).
func (a *adaptive) lowerUntested(r reading) {
	p := &a.peaks
	to := max(headroom*max(p.now, p.before), firstLimit/2)
	if a.proven && !a.aim.jobs && to < a.limit && r.at-p.first > peakAfter {
		a.set(r.at, starting, to, "start: no more ran")
	}
}

// peaks is the most in flight of late, at the start: of one to two terms of peakLasts.
type peaks struct {
	now, before  float64 // in the present term and in the one before
	first, began time.Duration
}

// enter enters the slots in use at an admission.
func (p *peaks) enter(at time.Duration, inFlight int) {
	if p.now == 0 { // the first admission
		p.first, p.began = at, at
	}
	if age := at - p.began; age >= peakLasts {
		if p.before = p.now; age >= 2*peakLasts {
			p.before = 0
		}
		p.now, p.began = 0, at
	}
	p.now = max(p.now, float64(inFlight))
}

// filled reports whether all slots of the start are in use before there is a proven baseline.
func (a *adaptive) filled(r reading) bool {
	return r.full && a.limit == firstLimit && !a.proven && !a.enforcedLower(r)
}

// raiseTo returns the next limit to try, given n times measured at the current limit.
func (a *adaptive) raiseTo(r reading, n float64) float64 {
	u := &a.raises
	u.stride = min(max(u.stride, a.finestRaise(n)), maxStep)
	to := a.limit * (1 + u.stride)
	if a.recalls(r.at) {
		// A step visible in one cohort is enough: the former limit is likely right again.
		to = max(to, min(a.limit*(1+a.finestStep(1, maxStep)), a.former))
		if u.streak > 0 {
			to = max(to, min(a.former, recallMost*a.limit))
		}
	}
	return to
}

// recalls reports whether capacity was lost recently and has not been recovered.
func (a *adaptive) recalls(now time.Duration) bool {
	return a.former > recallFrom*a.limit && now-a.formerAt < recallFor
}

// finestRaise is the smallest raise, as a share of the limit, that a trial can detect, given n times
// measured before.
func (a *adaptive) finestRaise(n float64) float64 {
	return max(2*a.est.between(n, 0.8*raiseCohorts*a.est.generation(a.limit)), minStep)
}

func (a *adaptive) tryMore(r reading, to, inFlight float64, before mean) {
	from, pace := a.limit, a.pace
	a.set(r.at, raising, max(to, from+1), "is more concurrency free?")
	a.trial = trial{from: from, restore: from, to: a.limit, ranBefore: inFlight, before: before, paceBefore: pace, short: a.short(r)}
}

// judgeRaise decides about a raise.
func (a *adaptive) judgeRaise(r reading) {
	t := &a.trial
	t.enter(r, a.short(r))
	err := a.est.between(t.after.n, t.before.n)
	v, margin := t.judge(a.aim.criteriaOf(t), err, &a.pace, a.rough.spread(a.est.deviation()))
	if more, rose := t.changed(); t.cohorts == 1 && v == independent && rose > a.aim.raiseShare*more && r.n < t.to {
		t.after, t.ranAfter, v = mean{}, mean{}, undecided // the slots were still filling: latency lags concurrency
	}
	switch v {
	case undecided:
	case untested: // only the slots in use are confirmed
		a.raises.streak = 0
		a.set(r.at, holding, max(t.from, min(t.to, math.Round(mostBeyond*r.inFlight))), "the load is gone")
	case independent:
		a.keepRaise(r, margin < -err)
	case follows:
		a.undoRaise(r, margin > 1.5*err)
	}
}

// keepRaise keeps a raise that latency did not follow, and chooses the next trial.
func (a *adaptive) keepRaise(r reading, clearly bool) {
	t, u := &a.trial, &a.raises
	u.streak++
	u.vain = 0
	if u.stride *= 2; a.former > 0 && a.limit >= a.former {
		a.former, u.stride = 0, 0 // all lost capacity is back: raise carefully from here
	}
	a.trimmed = 0
	a.held, a.heldAt = t.after, t.ranAfter.value
	switch {
	case a.aim.jobs || clearly && t.after.value > a.base.value+minExcess && t.followed():
		// Higher latency is the price of the raise: a trim would undo the raise.
		a.base, a.proven = t.after, true
	case t.after.value < a.base.value:
		a.flat(t.after)
	}
	a.phase = holding
	u.next = r.at
	a.chooseTrial(r, a.held, a.heldAt)
}

// undoRaise refuses a raise because latency rose with it, clearly or not.
func (a *adaptive) undoRaise(r reading, clearly bool) {
	t, u := &a.trial, &a.raises
	u.streak = 0
	a.fullAt = r.at
	switch {
	case !a.recalls(r.at):
		a.confirmed = t.from
	case t.to >= a.former: // part of the capacity is back: try half way next
		a.former = math.Sqrt(t.from * t.to)
	}
	if clearly {
		u.stride /= 2
	} else {
		u.stride *= 1.5
	}
	a.set(r.at, holding, t.from, "latency rose with it")
	if !a.recalls(r.at) {
		a.pace = t.paceBefore // the limit is as before the raise
	}
	more, rose := t.changed()
	u.next = r.at + a.raisePause(r, more, rose)
	u.vain++
	if u.stride > a.finestRaise(t.before.n) && t.to > t.from+1 {
		u.next = r.at // another size may tell more
	}
}

// raisePause is the pause after a refused raise, from raiseSoon to raiseLatest. It grows with the throughput that the trial
// cost. It also doubles with each refusal in a row, unless lost capacity may return, because
// callers wait longer during a trial.
func (a *adaptive) raisePause(r reading, more, rose float64) time.Duration {
	lost := 1 - math.Exp(-min(max(rose-more, 0), more)) // share of throughput lost during the trial
	trialTime := r.elapsed * time.Duration(a.trial.cohorts)
	share := raiseCost
	if a.recalls(r.at) {
		share = recallCost
	}
	pause := max(raiseSoon, time.Duration(lost*float64(trialTime)/share), 2*r.elapsed)
	if !a.recalls(r.at) {
		pause <<= min(a.raises.vain, maxVain)
	}
	return min(pause, raiseLatest)
}
