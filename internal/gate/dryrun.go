package gate

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/priority"
	"github.com/spillway-go/spillway/limit"
)

// dryRun says what enforcing would refuse, while all work is admitted. It has the books of a queue that
// nobody waits in: how many slots would be in use, and how many slots' worth of work of each level would
// wait. Arrivals fill the books, and time alone drains them, as fast as the slots of the limit would.
// Work that would be refused is not in the books, although it runs. Measured times would not do:
// without a limit a queue may stand in the backend, and all work is slow, which a limit would prevent.
// So service times are estimates, too. Arrivals are refused by the rules for arrivals at a gate.
//
// What would be lost later is not known: no waiter would be dropped because others lasts its turn.
type dryRun struct {
	estimator estimator
	own       bool // the estimator is not the law, and the gate tells it what happens
	at        time.Duration
	used      float64         // slots that would be in use
	waiting   [levels]float64 // slots' worth of work that would wait
	callers   [levels]float64 // callers that would wait
	forced    uint64          // number of the latest start through Force
}

// estimator is a law that also estimates what enforcing a limit would do: limit.NewPassive.
type estimator interface {
	limit.Law
	limit.Forgetter
	limit.Reporter
	// Within estimates how long the work of a sample would have held its slot with at most n slots in
	// use, where the sample had load beside it.
	Within(s limit.Sample, load limit.Load, n int) time.Duration
	// Unsafe reports whether the estimate must not be trusted, for a reason that State gives.
	Unsafe() bool
}

func newEstimator() estimator { return limit.NewPassive().(estimator) }

// beginDryRun begins with the work that runs.
func (g *Gate) beginDryRun(now time.Duration) {
	e, ok := g.limits.law.(estimator)
	if !ok {
		e = newEstimator()
	}
	g.dry = &dryRun{estimator: e, own: !ok, at: now, used: float64(min(g.inFlight, g.Limit()))}
}

// Force admits work regardless of the limit, unless the intake is closed. A dry run counts the
// refusals of an enforcing gate, and enforces nothing. mayWait is whether the work could have
// waited. would is the reason for which the gate's owner would have refused the work without asking
// the gate, or zero.
func (g *Gate) Force(now time.Duration, a Arrival, mayWait bool, would spillway.Reason) Decision {
	lv, kind := g.came(now, &a)
	if g.closed != 0 {
		g.beginShortage()
		g.rejected[lv][g.closed]++
		return Decision{Action: Reject, Reason: g.closed}
	}
	if g.dry == nil {
		g.beginDryRun(now)
	}
	d := Decision{Action: Reject, Reason: would}
	if would == 0 {
		d = g.wouldDecide(now, lv, kind, &a, mayWait)
	}
	d = g.unenforced(lv, d)
	g.admit(now, lv, kind, &a)
	if a.Traits&Long == 0 {
		g.dry.forced = g.seq
		if g.dry.own {
			g.dry.estimator.Admit(now, g.load())
		}
	}
	return d
}

// wouldDecide enters work in the books, or refuses it.
func (g *Gate) wouldDecide(now time.Duration, lv int, kind uint8, a *Arrival, mayWait bool) (d Decision) {
	v, slots, ahead := g.dry, float64(g.Limit()), 0.0
	// While no work would wait, no more would run within the limit than runs without one.
	if a.Cost <= g.Limit()-g.inFlight && v.callers == ([levels]float64{}) && a.Deadline > now {
		v.at, v.used = now, float64(g.inFlight+a.held())
		return Decision{Action: Admit}
	}
	g.drain(now)
	for _, n := range v.callers[:lv+1] {
		ahead += n
	}
	switch {
	case a.Deadline <= now && !g.unbounded():
		return Decision{Action: Reject, Reason: spillway.ReasonDeadlineTooClose}
	// Slots in use are a mean over chance: the nearest whole number is the most probable one.
	case ahead == 0 && (v.used+float64(a.Cost) <= slots+0.5 || v.used < 0.5):
		v.used = min(v.used+float64(a.held()), slots)
		return Decision{Action: Admit}
	case a.Traits&OverShare != 0:
		return Decision{Action: Reject, Reason: spillway.ReasonQuota}
	case !mayWait || g.cfg.QueueSize == 0:
		d = Decision{Action: Reject, Reason: g.blame(spillway.ReasonQueueFull)}
	default:
		d = g.queueIfSoon(now, lv, kind, a, g.wouldWait(lv, a.Cost))
	}
	switch {
	case d.Action == Wait && ahead+1 <= float64(g.cfg.QueueSize): // work of lower levels would lose its place
		v.waiting[lv] += float64(g.slotsFor(a))
		v.callers[lv]++
		return Decision{Action: Admit}
	case d.Action == Wait:
		d = Decision{Action: Reject, Reason: spillway.ReasonQueueFull}
	}
	if !d.Anyway {
		if g.mustAdmit(int(v.used), a.held()) {
			return Decision{Action: Admit}
		}
		g.demand.refuse(1, d.Reason)
	}
	return d
}

// drain brings the books up to now: the highest level is served first, and once nothing waits, slots
// become free.
func (g *Gate) drain(now time.Duration) {
	v := g.dry
	slots, passed := float64(g.Limit()), float64(now-v.at)
	v.at, v.used = now, min(v.used, slots)
	if passed <= 0 || !g.service.known() {
		return
	}
	for i, n := range v.waiting {
		if n == 0 {
			v.callers[i] = 0 // long work holds no slots
			continue
		}
		lasts := n * g.service.hold(i) / slots
		if lasts > passed {
			v.waiting[i] -= n * passed / lasts
			v.callers[i] -= v.callers[i] * passed / lasts
			return
		}
		passed -= lasts
		v.waiting[i], v.callers[i] = 0, 0
	}
	v.used *= 1 - passed/(passed+max(g.service.typical(), 1))
}

// wouldWait is the wait that an enforcing gate would predict, in nanoseconds.
func (g *Gate) wouldWait(lv, cost int) float64 {
	work := float64(cost) * g.service.hold(lv)
	for i, n := range g.dry.waiting[:lv+1] {
		work += n * g.service.hold(i)
	}
	return work / g.free(lv)
}

// WouldRetryAfter is RetryAfter in a dry run, by the work that would be ahead.
func (g *Gate) WouldRetryAfter(p spillway.Priority) time.Duration {
	if g.dry == nil {
		return g.RetryAfter(p)
	}
	lv := priority.Level(p)
	return g.advise(lv, g.wouldWait(lv, 1))
}

// Estimate describes how reliable the decisions of a dry run are. unsafe reports whether they
// must not be trusted, for a reason that is in text.
func (g *Gate) Estimate() (text string, unsafe bool) {
	if g.dry == nil {
		return newEstimator().State(), false
	}
	return g.dry.estimator.State(), g.dry.estimator.Unsafe()
}

// timeWithin estimates how long ended work would have taken within the limit. load is what runs
// without it.
func (g *Gate) timeWithin(s limit.Sample, load limit.Load) time.Duration {
	v := g.dry
	if s.Seq > v.forced { // the gate enforces again
		g.dry = nil
		return s.End - s.Start
	}
	if v.own {
		v.estimator.Observe(s, load)
	}
	return v.estimator.Within(s, load, g.Limit())
}
