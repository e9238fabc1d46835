package limit

import (
	"fmt"
	"math"
	"time"
)

// Adaptive finds the limit by experiment, without configuration.
//
// Latency that rises has two causes with one signal: our own concurrency, where
// a lower limit helps, or a backend that became slower, where it only loses
// throughput. A law that guesses drifts up with the queue it makes, or ratchets
// down on noise. This one looks: it changes the limit, measures a cohort of the
// requests admitted after the change, and keeps the change only if latency
// followed as it must.
//
//   - A raise is kept if latency did not follow it: below the knee more
//     concurrency is free. It is tried whenever every slot is in use, more
//     rarely where the trial itself costs throughput.
//   - A cut is kept if latency fell with it: what was cut was only waiting. If
//     not, the backend itself is slower; the limit is restored and the baseline
//     moved.
//
// How far to go follows from Little's law: of what was in flight, the share by
// which latency exceeds its baseline was waiting. Every threshold is in standard
// errors of the measured spread, so trials are small and quick where times are
// regular and large and slow where tails are heavy. Only trials, and time in
// which slots were free, move the baseline.
//
// Errors say nothing about latency and are left out. A deadline that ended a
// request counts as at least that long.
type Adaptive struct {
	claimed
	aim      aim
	limit    float64 // a whole number
	phase    phase
	admitted uint64 // requests, the number of the latest
	draining bool   // waiting until no more run than the limit allows
	cohort   cohort
	classes  classes
	spread   float64 // of the logarithm of a time
	readings float64 // behind it
	rate     float64 // admissions per second

	base    mean // latency without a queue
	known   bool // there is a baseline
	proven  bool // and it has no queue in it: more concurrency was free, or less did not help
	held    mean // latency at the held limit
	heldAt  float64
	busy    int     // cohorts in a row in which every slot was in use
	trimmed float64 // small cuts since the last trial, as a logarithm

	trial     trial
	streak    int           // raises kept in a row
	stride    float64       // of the next raise, as a share: what a refused one halves and a kept one doubles
	good      float64       // the limit that a raise or a cut confirmed last
	lost      float64       // the same, before capacity was lost; it may come back
	lostAt    time.Duration // when
	target    float64       // where the knee may be, from the last cut; zero: no idea
	nextRaise time.Duration // not before
	nextCut   time.Duration // not before; a cut on schedule looks for a queue that nobody noticed
	cutEvery  time.Duration

	why string // the limit changed last
}

type phase uint8

const (
	growing phase = iota // at the start, until something gives
	holding
	raising
	cutting
)

const (
	firstLimit = 5 // a backend of one or two slots does not drown in it

	minStep     = 0.04 // of the limit: less is not worth a trial
	maxStep     = 0.5
	minExcess   = 0.03 // of latency, as a logarithm: less is not worth a cut
	faster      = 0.1  // a fall below the baseline beyond this and three standard errors
	jump        = 0.15 // a rise at once beyond this and three standard errors
	trimAtOnce  = 0.15 // an excess below this is trimmed without a trial,
	trimInAll   = 0.2  // but after so much of it in all there is one
	trialRounds = 3    // cohorts until a trial is decided anyway

	raisePause  = 200 * time.Millisecond
	raiseCost   = 0.015 // the share of throughput that trials upward may cost
	raiseLatest = 5 * time.Second
	recallCost  = 0.04        // the same while capacity that was lost
	recallFor   = time.Minute // so recently may come back
	afterSlow   = time.Second // trials pause when the backend itself became slower
	cutSoon     = 500 * time.Millisecond
	cutLatest   = 15 * time.Second
)

// NewAdaptive returns the law at its start. It needs no numbers.
func NewAdaptive() *Adaptive { return newAdaptive(forLatency) }

func newAdaptive(aim aim) *Adaptive {
	a := &Adaptive{aim: aim, limit: firstLimit, spread: 0.3, cutEvery: time.Second, nextCut: time.Second}
	a.begin(0)
	return a
}

// Name returns "adaptive".
func (a *Adaptive) Name() string { return "adaptive" }

// Limit is how much may run at once now.
func (a *Adaptive) Limit() int { return int(a.limit) }

// Why returns the reason of the last change.
func (a *Adaptive) Why() string { return a.why }

// State says what the law is doing.
func (a *Adaptive) State() string {
	switch {
	case a.phase == growing:
		return "growing: at the start, until latency rises"
	case a.phase == raising:
		return fmt.Sprintf("raising: trying %.0f instead of %.0f", a.trial.to, a.trial.from)
	case a.phase == cutting && a.trial.suspicion:
		return fmt.Sprintf("experiment: latency rose; trying %.0f instead of %.0f", a.trial.to, a.trial.from)
	case a.phase == cutting:
		return fmt.Sprintf("experiment: looking for a hidden queue with %.0f instead of %.0f", a.trial.to, a.trial.from)
	case a.busy == 0:
		return "holding: slots are free"
	}
	return "holding: every slot is in use"
}

// Admit says that one piece of work starts.
func (a *Adaptive) Admit(at time.Duration, load Load) {
	a.admitted++
	if !a.draining {
		a.cohort.admit(a.admitted, at, load, a.Limit())
	}
}

// Observe takes the end of one piece of work.
func (a *Adaptive) Observe(s Sample, load Load) {
	if a.draining {
		if load.InFlight <= a.Limit() {
			a.begin(s.End)
		}
		return
	}
	class := s.Class % Classes
	if member := a.cohort.has(s.Seq); member || s.Outcome == Success && a.classes.learns(class) {
		log := logOf(s.End - s.Start)
		if s.Outcome == Success && a.classes.learn(class, log) {
			a.forget()
		}
		if member {
			a.cohort.end(log-a.classes.offset[class], s.Outcome)
		}
	}
	r, ok := a.cohort.read(s.End, &a.classes)
	if !ok {
		if a.cohort.spent() {
			a.begin(s.End)
		}
		return
	}
	if a.aim.jobs { // what was lost took time too
		r.level -= math.Log(1 - min(r.lost, 0.9))
	}
	a.readings++
	a.spread += max(0.2, 1/a.readings) * (r.spread - a.spread)
	if r.perSecond > 0 {
		a.rate = r.perSecond
	}
	a.judge(r)
	if !a.draining || load.InFlight <= a.Limit() {
		a.begin(s.End)
	}
}

// forget drops what was measured by another yardstick.
func (a *Adaptive) forget() {
	a.known, a.proven, a.base, a.held = false, false, mean{}, mean{}
}

// begin starts a cohort.
func (a *Adaptive) begin(now time.Duration) {
	a.draining = false
	want := a.generation()
	switch a.phase {
	case growing:
		want = min(max(fewMembers, a.limit), 100)
	case raising, cutting:
		// Enough to tell half of what the change must do from nothing.
		need := 1.4 * a.error(1) / (a.aim.tells * math.Abs(math.Log(a.trial.to/a.trial.from)))
		want = min(max(need*need, leastMembers, a.limit/2), want)
	case holding:
		if !a.proven {
			want = min(max(fewMembers, a.limit), want)
		}
	}
	// Of a multiple of five, four in five is exact: small cohorts and large ones
	// leave out the same share.
	first := a.admitted + 1
	if a.aim.jobs && a.phase == raising && a.trial.cohorts == 0 {
		first += uint64(a.limit / 2) // the first still meet what ran before
	}
	a.cohort.begin(first, int(math.Ceil(want/5))*5, now)
}

// error is the standard error of a level measured with n times. Leaving out the
// slowest fifth costs a quarter more than the spread says.
func (a *Adaptive) error(n float64) float64 { return 1.25 * a.spread / math.Sqrt(max(n, 1)) }

// generation is how many members a cohort takes: what runs at once anyway, and
// enough to know a level to a tenth, if they come within a second.
func (a *Adaptive) generation() float64 {
	want := max(16, a.limit, math.Pow(2*a.spread/0.1, 2))
	if a.rate > 0 {
		want = min(want, max(0.7*a.rate, 12, a.limit))
	}
	return min(want, maxCohort)
}

// step is the change of the limit, as a share, that a cohort can tell from none
// by z standard errors.
func (a *Adaptive) step(z, most float64) float64 {
	return min(max(2*z*1.4*a.error(0.8*a.generation()), minStep), most)
}

// flat enters a latency measured without a queue.
func (a *Adaptive) flat(m mean) {
	a.base.add(m.level, m.n, max(320, math.Pow(1.25*a.spread/0.04, 2)))
}

// lower takes a latency that may be lower than the baseline. If it clearly is, the
// backend has become faster. How much of what is left is queueing nobody knows, so a
// cut is due soon.
func (a *Adaptive) lower(m mean, now time.Duration) {
	if a.base.level-m.level > max(faster, 3*math.Hypot(a.error(m.n), a.error(a.base.n))) {
		a.base, a.held = m, mean{}
		a.nextCut, a.cutEvery = min(a.nextCut, now+2*cutSoon), cutSoon
	}
}

// judge takes what a cohort tells.
func (a *Adaptive) judge(r reading) {
	if r.drowned {
		a.drowned(r)
		return
	}
	first := !a.known // this cohort is all there is
	if first {
		a.known, a.base = true, mean{r.level, r.n}
	}
	if r.saturated {
		a.busy++
	} else {
		a.busy = 0
	}
	switch a.phase {
	case growing:
		a.grow(r, first)
	case holding:
		a.hold(r)
	case raising:
		a.raise(r)
	case cutting:
		a.cut(r)
	}
}

// drowned acts on a cohort that mostly ran into its deadlines: how long it would
// have taken is not known, only that too much runs.
func (a *Adaptive) drowned(r reading) {
	a.held = mean{}
	switch {
	case !a.proven:
		a.forget()
	case a.phase == growing: // work that waited for long has little time left: look
		a.suspect(r, max(r.level-a.base.level, jump), max(r.inFlight, a.limit), mean{r.level, r.n})
		return
	}
	a.streak, a.nextRaise, a.nextCut = 0, r.at, r.at
	const why = "most ran into their deadlines"
	switch {
	case a.aim.jobs && a.phase == raising:
		a.set(r.at, holding, a.trial.from, why)
	case r.peak >= 0.75*a.limit || a.phase == raising:
		a.set(r.at, holding, min(a.limit, r.inFlight)*a.aim.drowned, why)
	}
}

// grow doubles the limit until latency rises.
func (a *Adaptive) grow(r reading, first bool) {
	excess := r.level - a.base.level
	switch {
	case excess > max(jump, 1.4*math.Hypot(a.error(r.n), a.error(a.base.n))):
		a.held = mean{}
		// The cohort was admitted while the limit rose; those who met the queue
		// met it at the end.
		a.suspect(r, excess, max(r.inFlight, a.limit), mean{r.level, r.n})
		return
	case first && r.saturated && a.limit > firstLimit:
		// The yardstick changed on the way up.
		a.try(r, cutting, 0.5*a.limit, r.inFlight, mean{r.level, r.n}, false)
		return
	case !first:
		if excess < jump/2 {
			a.flat(mean{r.level, r.n})
		}
		a.proven = a.proven || a.limit > firstLimit || !r.saturated
	}
	if r.saturated {
		a.set(r.at, growing, 2*a.limit, "start: latency is flat")
	}
}

// hold watches the latency at the held limit.
func (a *Adaptive) hold(r reading) {
	if a.held.n == 0 || math.Abs(math.Log(r.inFlight/a.heldAt)) > 0.15 {
		a.held, a.heldAt = mean{r.level, r.n}, r.inFlight
	} else {
		before := a.held.n
		a.held.add(r.level, r.n, 16*r.n)
		a.heldAt += r.n / (before + r.n) * (r.inFlight - a.heldAt)
	}
	a.lower(a.held, r.at)
	if a.held.n == 0 {
		return
	}
	excess, lasting := r.level-a.base.level, a.held.level-a.base.level
	switch full := r.saturated || r.inFlight >= 0.75*a.limit; {
	case !full:
		a.streak = 0
		a.proven = true
		a.flat(mean{r.level, r.n})
	case !a.proven && a.limit > 1:
		// No baseline but this: look at once whether it is one.
		a.try(r, cutting, 0.5*a.limit, r.inFlight, mean{r.level, r.n}, false)
	case excess > jump+3*math.Hypot(a.error(r.n), a.error(a.base.n)):
		a.suspect(r, excess, r.inFlight, mean{r.level, r.n})
	case lasting > max(minExcess, 2.4*math.Hypot(a.error(a.held.n), a.error(a.base.n))):
		a.trim(r, lasting)
	case !r.saturated:
		a.streak = 0
	default:
		a.next(r, a.held, a.heldAt)
	}
}

// trim takes a small excess away. Small cuts are not worth a trial each, but a
// baseline that is wrong must not be followed far: not at all at 1, where there is
// nothing to cut and what lasts is the baseline.
func (a *Adaptive) trim(r reading, excess float64) {
	from := min(a.limit, math.Round(r.inFlight))
	to := min(from*math.Exp(-excess/1.25), from-1)
	a.trimmed += math.Log(from / max(to, 1))
	if a.limit > 1 && excess < trimAtOnce && a.trimmed < trimInAll {
		a.set(r.at, holding, to, "a little above the baseline")
		a.held = mean{}
		a.nextRaise = r.at + raisePause
		return
	}
	a.suspect(r, excess, a.heldAt, a.held)
}

// suspect cuts the limit because latency rose, to see whether it follows.
func (a *Adaptive) suspect(r reading, excess, inFlight float64, before mean) {
	a.trimmed = 0
	if !a.proven {
		a.try(r, cutting, 0.5*a.limit, inFlight, before, false)
		return
	}
	from := min(a.limit, math.Round(inFlight))
	a.try(r, cutting, from*math.Exp(-excessCut(excess)), inFlight, before, true)
}

// excessCut is by how much to lower the limit, as a logarithm, when latency is
// so far above its baseline. A backend that degrades raises it by more than the
// concurrency grew, so this is the least that can be needed; what is left of the
// excess is cut next.
func excessCut(excess float64) float64 { return min(max(excess/1.5, 0.2), 0.9) }
