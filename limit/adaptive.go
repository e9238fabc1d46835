package limit

import (
	"fmt"
	"math"
	"time"
)

// adaptive is the law of NewAdaptive and NewAdaptiveForThroughput. Its files, in the order to read:
// cohort.go and estimator.go make readings (classes.go), policy.go chooses an action for a reading,
// raise.go, cut.go and shed.go are the actions, and trial.go with pace.go judges a raise or a cut.
// docs/adr/0005 defines the words.
type adaptive struct {
	claimed
	aim   aim
	est   estimator
	limit float64 // a whole number
	phase phase
	why   string // reason of the last change of the limit

	base           mean      // baseline: latency without a queue
	known          bool      // a baseline exists
	proven         bool      // the baseline is taken to contain no queue: slots were free, the start went on from below a queue, or a cut did not help
	enforcedHigher bool      // a higher limit was enforced in the last cohort
	held           mean      // latency at the current limit while holding, to compare with base
	heldAt         float64   // slots in use behind held
	pace           pace      // since the limit was set
	rough          roughness // spread of one piece of work by the pace
	fullReadings   int       // consecutive full readings
	rises          int       // consecutive readings far above the baseline
	trimmed        float64   // sum of small cuts since a raise was kept or latency rose, as a logarithm

	trial  trial
	raises raises
	cuts   schedule // scheduled cuts, which look for an unnoticed queue
	sheds  schedule

	peaks     peaks         // of the most in flight at the start
	confirmed float64       // limit that a refused raise or an undone cut confirmed last; 0: none since capacity was lost
	former    float64       // confirmed before capacity was lost; 0: none was lost, or all of it is back
	formerAt  time.Duration // when capacity was lost

	fullAt time.Duration // when a trial last showed that the backend was full; 0: never
}

// fullLasts is how long a trial shows that the backend is full.
const fullLasts = time.Minute

// BackendFull reports whether a trial has shown of late that more work at once only waits: a raise was
// refused, or a cut took latency away. Package gate asks.
func (a *adaptive) BackendFull(now time.Duration) bool {
	return a.fullAt > 0 && now-a.fullAt < fullLasts
}

// schedule is when a kind of trial may run again.
type schedule struct {
	next  time.Duration // earliest time
	every time.Duration // current pause between two trials
}

// raises is when to try the next raise, and how large.
type raises struct {
	next   time.Duration // earliest time
	streak int           // raises kept in a row
	vain   int           // raises refused in a row, since a change was kept or the baseline moved
	stride float64       // next raise as a share of the limit: doubled when kept, halved when clearly refused, and half as much again when refused in doubt
}

type phase uint8

const (
	starting phase = iota // until latency rises
	holding
	raising
	cutting
	shedding // because much of the work is lost
	phases
)

// firstLimit is the initial limit. It refuses nobody at low concurrency, and for a backend with
// few slots the law lowers it within a second or two.
const firstLimit = 32

// NewAdaptive returns a law that finds the limit by experiment, without configuration.
//
// Rising latency has two causes with the same signal. If our own concurrency is the cause,
// a lower limit helps. If the backend itself became slower, a lower limit only loses throughput.
// A law that guesses the cause drifts up with its own queue or ratchets down on noise. This law
// runs a trial instead: it changes the limit, measures a cohort of the requests admitted
// afterwards and keeps the change only if throughput responded as it should. Throughput follows
// from concurrency and latency by Little's law.
//
//   - A raise is kept if latency did not rise with it: below the knee more concurrency is free.
//     If latency rose partly, the raise is kept if throughput clearly grew. A raise is tried
//     whenever every slot is in use, and less often if trials cost throughput or keep being
//     refused.
//   - A cut is kept if throughput hardly fell: the cut removed only waiting. If latency did
//     not fall, the backend itself is slower; the limit is restored and the baseline moved.
//   - Where all work takes less than 6 ms in the mean and the limit is at most 32, only throughput
//     counts. Latency starts no cut.
//   - If much of the work is lost to deadlines, departed callers or refusals by the backend, the
//     limit is lowered step by step. The lower limit stays if fewer losses occur, latency fell
//     and throughput did not; otherwise the limit is restored.
//
// The size of a cut follows from Little's law: the excess of latency over its baseline is the
// share of the requests in flight that waited. Thresholds grow with the standard error. So trials
// are small and quick for regular times, and large and slow for heavy tails.
//
// Failed work gives no latency and is left out. Work ended by its deadline or its caller counts as
// a lower bound.
//
// The law has three parts. An estimator turns ends of work into readings, a trial compares
// readings, with the pace as a second measure, and a policy chooses the action. The law waits
// while an outside limit prevents trials. It makes no cut because of latency while slots are free.
func NewAdaptive() Law { return newAdaptive(forLatency) }

func newAdaptive(aim aim) *adaptive {
	a := &adaptive{aim: aim, limit: firstLimit}
	a.est = newEstimator(&a.aim)
	a.cuts = schedule{next: firstCut, every: firstCut}
	a.sheds.every = shedSoon
	a.begin(0)
	return a
}

// Name returns "adaptive".
func (a *adaptive) Name() string { return "adaptive" }

// Limit returns how many slots may be in use now.
func (a *adaptive) Limit() int { return int(a.limit) }

// Why returns the reason of the last change of the limit.
func (a *adaptive) Why() string { return a.why }

// State describes what the law is doing now.
func (a *adaptive) State() string {
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
	case a.fullReadings == 0:
		return "holding: a raise waits until a measurement finds every slot in use"
	}
	return "holding: every slot was in use at the last measurement"
}

// Admit reports the start of one piece of work.
func (a *adaptive) Admit(at time.Duration, load Load) {
	if a.phase == starting {
		a.peaks.enter(at, load.InFlight)
	}
	a.est.admit(at, load, a.Limit())
}

// Observe reports the end of one piece of work. It may change the limit.
func (a *adaptive) Observe(s Sample, load Load) {
	ev, rescaled := a.est.observe(&s, load, a.Limit())
	if rescaled {
		a.forget()
	}
	if a.est.reweighed {
		a.est.reweighed, a.pace, a.trial.paceBefore, a.trial.done = false, pace{}, pace{}, 0
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

// Forget drops what the law knows about a class: its duration relative to other classes.
func (a *adaptive) Forget(class uint8) {
	changed, rescaled := a.est.classes.forget(class % Classes)
	a.est.forgotten = a.est.forgotten || changed
	if rescaled {
		a.forget()
	}
}

// begin starts a cohort with as many members as the phase needs.
func (a *adaptive) begin(now time.Duration) {
	want, skip := a.est.generation(a.limit), 0.0
	switch a.phase {
	case starting:
		want = min(max(fewMembers, a.limit), 100)
	case raising, cutting:
		// Enough members to detect the aim's resolution as a share of the change.
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
		skip = a.limit / 2 // the first admissions still meet work admitted before the raise
	}
	usual, slow := 0.0, math.Inf(1)
	if a.known {
		usual, slow = a.base.value, a.base.value+max(clearlySlow, 2*a.est.spread)
	}
	a.est.begin(now, want, usual, slow, uint64(skip))
}

// forget drops all measured latencies.
func (a *adaptive) forget() {
	a.known, a.proven, a.base, a.held = false, false, mean{}, mean{}
}

// set changes the phase and the limit. After a cut the excess running work drains first.
func (a *adaptive) set(now time.Duration, p phase, to float64, why string) {
	to = math.Round(min(max(to, 1), mostSlots))
	a.phase = p
	if to == a.limit {
		return
	}
	if to < a.limit {
		a.est.drain(now)
	}
	a.est.classes.meet(a.limit, to)
	a.limit, a.why, a.pace = to, why, pace{}
}
