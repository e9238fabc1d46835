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
// requests admitted after the change, and keeps the change only if throughput,
// which is what latency leaves of the change in concurrency, answered as it should.
//
//   - A raise is kept if latency did not follow it: below the knee more
//     concurrency is free. Where latency follows a part of the way the raise is kept
//     if clearly more is done. It is tried whenever every slot is in use, more
//     rarely where the trial itself costs throughput or stays refused; now and then
//     a raise is large.
//   - A cut is kept if hardly less is done: what was cut was only waiting. If
//     latency did not fall, the backend itself is slower; the limit is restored and
//     the baseline moved.
//   - Where much of the work is lost, to deadlines, to callers that gave up or to
//     refusals below, less and less is tried. If less is lost then, and no less is done,
//     the limit stays there; otherwise the limit goes back.
//
// How far to go follows from Little's law: of what was in flight, the share by
// which latency exceeds its baseline was waiting. Every threshold is in standard
// errors of the measured spread, so trials are small and quick where times are
// regular and large and slow where tails are heavy.
//
// Errors say nothing about latency and are left out. Work that its deadline or its
// caller ended would have taken at least that long.
//
// The law has three parts: an estimator makes readings of what ends, a trial
// compares them, with a second opinion from the pace, and a policy says what to do.
// It waits while an outside limit keeps it from testing its own, and it cuts nothing
// while slots are free.
type Adaptive struct {
	claimed
	aim   aim
	est   estimator
	limit float64 // a whole number
	phase phase
	why   string // the last change of the limit

	base    mean // latency without a queue
	known   bool // there is a baseline
	proven  bool // and it has no queue in it: more concurrency was free, or less did not help
	floored bool // a higher limit was enforced in the last cohort
	held    mean // latency at the held limit
	heldAt  float64
	pace    pace // since the limit was set
	rough   roughness
	busy    int     // readings in a row in which every slot was in use
	rises   int     // readings in a row that were far above the baseline
	trimmed float64 // small cuts since the last trial, as a logarithm

	trial  trial
	raises raises
	cuts   schedule // they look for a queue that has gone unnoticed
	bolds  schedule // raises by far
	sheds  schedule

	good     float64       // the limit that a raise or a cut confirmed last
	former   float64       // the same, before capacity was lost; it may come back
	formerAt time.Duration // when it was lost
}

// schedule says when something may be tried again.
type schedule struct {
	next  time.Duration // not before
	every time.Duration
}

// raises says when to try more, and how much.
type raises struct {
	next   time.Duration // not before
	streak int           // kept in a row
	vain   int           // refused in a row, since a change of the limit was kept or the baseline moved
	stride float64       // the size of the next, as a share of the limit: a refused one halves it, a kept one doubles it
	target float64       // where the knee may be, from the last change; zero: no idea
}

type phase uint8

const (
	starting phase = iota // until latency rises
	holding
	raising
	cutting
	shedding // much of the work is lost
	phases
)

// firstLimit is where the law begins. It refuses nobody where little runs at once, and a
// backend of a few slots has come down from it after a second or two.
const firstLimit = 32

// NewAdaptive returns the law at its start. It needs no numbers.
func NewAdaptive() *Adaptive { return newAdaptive(forLatency) }

func newAdaptive(aim aim) *Adaptive {
	a := &Adaptive{aim: aim, limit: firstLimit}
	a.est = newEstimator(&a.aim)
	a.cuts = schedule{next: firstCut, every: firstCut}
	a.bolds = schedule{next: boldFirst, every: boldFirst}
	a.sheds.every = shedSoon
	a.begin(0)
	return a
}

// Name returns "adaptive".
func (a *Adaptive) Name() string { return "adaptive" }

// Limit is how much may run at once now.
func (a *Adaptive) Limit() int { return int(a.limit) }

// Why says why the limit was changed last.
func (a *Adaptive) Why() string { return a.why }

// State says what the law is doing.
func (a *Adaptive) State() string {
	t := &a.trial
	switch {
	case a.phase == starting:
		return "growing: at the start, until latency rises"
	case a.phase == raising:
		return fmt.Sprintf("raising: trying %.0f instead of %.0f", t.to, t.from)
	case a.phase == shedding:
		return fmt.Sprintf("experiment: much of the work is lost; trying %.0f instead of %.0f", a.limit, t.from)
	case a.phase == cutting && t.suspicion:
		return fmt.Sprintf("experiment: latency rose; trying %.0f instead of %.0f", t.to, t.from)
	case a.phase == cutting:
		return fmt.Sprintf("experiment: looking for a hidden queue with %.0f instead of %.0f", t.to, t.from)
	case a.busy == 0:
		return "holding: slots are free"
	}
	return "holding: every slot is in use"
}

// Admit says that one piece of work starts.
func (a *Adaptive) Admit(at time.Duration, load Load) { a.est.admit(at, load, a.Limit()) }

// Observe takes the end of one piece of work.
func (a *Adaptive) Observe(s Sample, load Load) {
	ev, rescaled := a.est.observe(&s, load, a.Limit())
	if rescaled {
		a.forget()
	}
	if a.est.reweighed {
		a.est.reweighed, a.pace, a.trial.paced, a.trial.done = false, pace{}, pace{}, 0
	}
	switch ev {
	case nothing:
		return
	case read:
		a.decide(a.est.latest)
	}
	if !a.est.draining || ev == restart || load.InFlight <= a.Limit() {
		a.begin(s.End)
	}
}

// Forget drops what is known of a class: how much longer its work takes than that of others.
func (a *Adaptive) Forget(class uint8) {
	changed, rescaled := a.est.classes.forget(class % Classes)
	a.est.changed = a.est.changed || changed
	if rescaled {
		a.forget()
	}
}

// begin starts a cohort of as many as the phase needs.
func (a *Adaptive) begin(now time.Duration) {
	want, skip := a.est.generation(a.limit), 0.0
	switch a.phase {
	case starting:
		want = min(max(fewMembers, a.limit), 100)
	case raising, cutting:
		// Enough to tell half of what the change must do from nothing.
		need := 1.4 * a.est.error(1) / (a.aim.resolution * math.Abs(math.Log(a.trial.to/a.trial.from)))
		if a.trial.cohorts < 2 {
			want = min(max(need*need, leastMembers, a.limit/2), want)
		}
	case holding:
		if !a.proven {
			want = min(max(fewMembers, a.limit), want)
		}
	}
	if a.aim.jobs && a.phase == raising && a.trial.cohorts == 0 {
		skip = a.limit / 2 // the first still meet what ran before
	}
	usual, slow := 0.0, math.Inf(1)
	if a.known {
		usual, slow = a.base.level, a.base.level+max(clearlySlow, 2*a.est.spread)
	}
	a.est.begin(now, want, usual, slow, uint64(skip))
}

// forget drops what is known of latency.
func (a *Adaptive) forget() {
	a.known, a.proven, a.base, a.held = false, false, mean{}, mean{}
}

// set changes the limit. A lower one first lets what runs drain.
func (a *Adaptive) set(now time.Duration, p phase, to float64, why string) {
	to = math.Round(min(max(to, 1), Most))
	a.phase = p
	if to == a.limit {
		return
	}
	if to < a.limit {
		a.est.drain(now)
	}
	a.limit, a.why, a.pace, a.est.losses = to, why, pace{}, losses{from: a.est.admitted + 1}
}
