package limit

import (
	"math"
	"time"
)

// trial is a change of the limit that is being looked at.
type trial struct {
	from, to  float64 // limits
	inFlight  float64 // before
	before    mean
	after     mean
	ran       mean // in flight, after
	cohorts   int
	suspicion bool // made because latency rose, not on schedule
}

// next decides what to try while every slot is in use and nothing is wrong.
func (a *Adaptive) next(r reading, level mean, inFlight float64) {
	switch {
	case r.at >= a.nextCut && a.limit > 1 && a.streak == 0 && a.busy > 3:
		a.try(r, cutting, a.limit*math.Exp(-max(0.2, a.step(1.5, 0.5))), inFlight, level, false)
	case r.at >= a.nextRaise:
		// Where the held latency is the baseline, both are one measurement.
		if a.base.n > 0 && math.Abs(level.level-a.base.level) < 2*math.Hypot(a.error(level.n), a.error(a.base.n)) {
			level.add(a.base.level, min(a.base.n, level.n), 2*level.n)
		}
		a.stride = min(max(a.stride, a.finest(level.n)), maxStep)
		to := a.limit * (1 + a.stride)
		if a.recalls(r.at) {
			// One cohort shall tell; and what was right once is likely again.
			to = max(to, min(a.limit*(1+a.step(1, maxStep)), a.lost))
			if a.streak > 0 && a.target == 0 {
				to = max(to, a.lost)
			}
		}
		if least := 1 + 0.6*(to/a.limit-1); a.target > least*a.limit && a.target < 1.7*a.limit {
			to = a.target
		}
		a.target = 0
		a.try(r, raising, to, inFlight, level, false)
	}
}

// recalls reports whether capacity was lost of late, and not found again.
func (a *Adaptive) recalls(now time.Duration) bool {
	return a.lost > 1.3*a.limit && now-a.lostAt < recallFor
}

// finest is the smallest step upward, as a share, that a trial can tell from
// none, when n times are known before it.
func (a *Adaptive) finest(n float64) float64 {
	return max(2*math.Hypot(a.error(n), a.error(0.8*(trialRounds-1)*a.generation())), minStep)
}

// try changes the limit by at least one and watches what latency does.
func (a *Adaptive) try(r reading, p phase, to, inFlight float64, before mean, suspicion bool) {
	from := a.limit
	why := "is more concurrency free?"
	if p == cutting {
		if from <= 1 { // nothing waits behind itself: this is latency without a queue
			a.phase = holding
			a.proven, a.base, a.held = true, before, mean{}
			return
		}
		to = min(to, from-1)
		why = "is there a hidden queue?"
		if suspicion {
			why = "latency rose: is it our queue?"
		}
	} else {
		to = max(to, from+1)
	}
	a.set(r.at, p, to, why)
	a.trial = trial{from: from, to: a.limit, inFlight: inFlight, before: before, suspicion: suspicion}
}

// set changes the limit. A lower one first lets what runs drain.
func (a *Adaptive) set(now time.Duration, p phase, to float64, why string) {
	to = math.Round(min(max(to, 1), Most))
	a.phase = p
	if to == a.limit {
		return
	}
	if to < a.limit {
		a.draining = true
	}
	a.limit, a.why = to, why
}

func (t *trial) enter(r reading) {
	t.cohorts++
	t.after.add(r.level, r.n, math.Inf(1))
	t.ran.add(r.inFlight, r.n, math.Inf(1))
}

// raise judges a raise.
func (a *Adaptive) raise(r reading) {
	t := &a.trial
	t.enter(r)
	rose := t.after.level - t.before.level
	more := math.Log(t.ran.level / t.inFlight)
	if more < 0.3*math.Log(t.to/t.from) {
		// The load is gone. What ran is all that was learned.
		a.streak = 0
		a.set(r.at, holding, max(t.from, min(t.to, math.Round(1.3*r.inFlight))), "the load is gone")
		return
	}
	err := math.Hypot(a.error(t.after.n), a.error(t.before.n))
	margin := more/a.aim.follows - rose
	switch last := t.cohorts >= trialRounds-1; {
	case margin > err || last && margin > 0:
		a.streak++
		if a.stride *= 2; a.lost > 0 && a.limit >= a.lost {
			a.lost, a.stride = 0, 0 // all of it is back: look carefully for more
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
		a.nextRaise = r.at
		a.next(r, a.held, a.heldAt)
	case margin < -0.6*err || last:
		a.streak = 0
		if !a.recalls(r.at) {
			a.good = t.from
		}
		sure := margin < -1.5*err
		if sure {
			a.stride /= 2
		} else {
			a.stride *= 1.5
		}
		// Little's law: what latency rose by was waiting.
		knee := t.ran.level * math.Exp(-max(rose+err, 0))
		a.set(r.at, holding, min(max(t.from, knee), t.to), "latency rose with it")
		lost := 1 - math.Exp(-min(max(rose-more, 0), more)) // throughput, during the trial
		spent := r.took * time.Duration(t.cohorts)
		share := raiseCost
		if a.recalls(r.at) {
			share = recallCost
		}
		pause := min(max(raisePause, time.Duration(lost*float64(spent)/share), 2*r.took), raiseLatest)
		if a.target = t.ran.level * math.Exp(-max(rose, 0)/1.5); a.stride > a.finest(t.before.n) && t.to > t.from+1 {
			pause = 0 // it went too far, not the wrong way
		}
		a.nextRaise = r.at + pause
	}
}

// cut judges a cut.
func (a *Adaptive) cut(r reading) {
	t := &a.trial
	t.enter(r)
	fell := t.before.level - t.after.level
	less := math.Log(t.inFlight / t.ran.level)
	err := math.Hypot(a.error(t.after.n), a.error(t.before.n))
	margin := fell - a.aim.falls*less
	switch {
	case math.Abs(margin) < 1.5*err && t.cohorts < trialRounds:
		// Not yet.
	case margin > 0.7*err && fell > 2*err:
		a.keepCut(r, fell, less, err)
	default:
		a.undoCut(r)
	}
}

// keepCut keeps a cut that latency followed: what was cut was waiting.
func (a *Adaptive) keepCut(r reading, fell, less, err float64) {
	t := &a.trial
	a.held, a.heldAt = t.after, t.ran.level
	a.phase = holding
	a.cutEvery = cutSoon
	if a.target = t.inFlight * math.Exp(-fell/1.5); t.suspicion && a.good > 0 {
		a.lost, a.lostAt, a.good = a.good, r.at, 0
	}
	rest := t.after.level - a.base.level
	switch {
	case t.suspicion && rest > max(0.06, 2*a.error(t.after.n)): // some of it is still there
		a.try(r, cutting, a.limit*math.Exp(-excessCut(rest)), t.ran.level, t.after, true)
	case !t.suspicion: // it was queueing, and nobody had noticed: look further down
		if a.proven = false; fell > 0.7*less { // as it does where all is queueing
			a.try(r, cutting, 0.5*a.limit, t.ran.level, t.after, false)
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
		a.nextRaise, a.nextCut = r.at, r.at+a.cutEvery
		a.next(r, a.held, a.heldAt)
	}
}

// undoCut restores the limit: latency did not follow, so it is the backend's own.
func (a *Adaptive) undoCut(r reading) {
	t := &a.trial
	start := a.good == 0 && !a.proven && t.from <= 2*firstLimit
	if !a.recalls(r.at) {
		a.good = t.from
	}
	why := "no hidden queue"
	if !a.proven {
		a.proven, a.base = true, t.after
	}
	if math.Abs(t.after.level-a.base.level) > max(0.12, 3*a.error(t.after.n)) {
		why = "the backend itself is slower"
		a.base = t.after
		a.cutEvery = cutSoon
		if a.aim.jobs { // and if what is slower is a wait, much more may run
			a.stride = maxStep
		}
	} else {
		a.flat(t.after)
		// Hours in which nothing came are not what the trial cost: its members take
		// what Little's law says, at most ten times that where tails are heavy.
		took := 10 * math.Exp(t.after.level) * (t.after.n/t.ran.level + float64(t.cohorts))
		spent := min(r.took*time.Duration(t.cohorts), time.Duration(min(took, float64(time.Hour))))
		a.cutEvery = max(min(3*a.cutEvery, cutLatest), 40*spent)
	}
	a.held = mean{}
	next := holding
	if start { // with a baseline at last
		next = growing
	}
	a.set(r.at, next, t.from, why)
	a.nextRaise, a.nextCut = r.at, r.at+a.cutEvery
	if !a.aim.jobs && t.suspicion && !a.recalls(r.at) { // and the limit is as right as it was: what is slower needs no more trials now
		a.nextRaise, a.nextCut = r.at+afterSlow, r.at+max(3*afterSlow, a.cutEvery)
	}
}
