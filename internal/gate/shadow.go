package gate

import (
	"slices"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/places"
	"github.com/spillway-go/spillway/internal/priority"
	"github.com/spillway-go/spillway/limit"
)

// shadow simulates enforcement in a dry run: a second gate with the same limit decides about the
// same arrivals. Work that the shadow refuses is not in the shadow, although it runs. Work ends in
// the shadow when it would have ended within the limit. Measured times would not do: without a
// limit a queue may stand in the backend, and all work is slow, which a limit would prevent.
//
// The limit of both gates is that of the first gate's law. The law is the owner's choice, usually
// limit.NewPassive in a dry run. The shadow has a passive law of its own for the times.
type shadow struct {
	passive passiveLaw // estimates how long work would take within the limit
	gate    *Gate
	ends    ends
	shape   shape
	free    *Waiter       // unused waiters, linked by next
	early   []Grant       // run in the shadow; their service times are not known yet
	late    []LateRefusal // not yet returned by Gate.LateRefusals
	forced  uint64        // number of the latest start through Force
}

// passiveLaw is a law that also estimates what enforcing its limit would do: limit.NewPassive.
type passiveLaw interface {
	limit.Law
	limit.Forgetter
	limit.Reporter
	// Within estimates how long the work of a sample would have held its slot with at most n
	// pieces of work in flight.
	Within(s limit.Sample, n int) time.Duration
	// Unsafe reports whether the estimate must not be trusted, for a reason that State gives.
	Unsafe() bool
}

func newPassiveLaw() passiveLaw { return limit.NewPassive().(passiveLaw) }

// LateRefusal is work that a dry run would have queued and then refused.
type LateRefusal struct {
	Priority spillway.Priority
	Reason   spillway.Reason
}

// pieces is the number of slots in use up to which a shadow begins with one piece of work for each
// slot. With more slots in use, pieces take several slots: where slots are bytes, billions are in
// use.
const pieces = 1 << 12

// mostLateRefusals bounds the list for an owner that does not call Gate.LateRefusals.
const mostLateRefusals = 1024

// mostShadowWaiters bounds the waiters of a shadow. Callers in a dry run do not wait: each is admitted
// and may send again, so waiters of the shadow can outnumber callers. Work that arrives while that
// number waits is left out of the shadow.
const mostShadowWaiters = 1 << 16

// shadowBegins starts a shadow with the current evidence and the running work.
func (g *Gate) shadowBegins(now time.Duration) {
	s := &shadow{passive: newPassiveLaw(), gate: New(g.cfg)}
	s.gate.follow(g)
	kind := g.kind(places.Name(0).Key(levels-1, places.Scales-1), 0)
	s.gate.demand, s.gate.overdemand, s.gate.service, s.gate.inShadow = g.demand, g.overdemand, g.service, true
	s.gate.service.kinds.list = slices.Clone(g.service.kinds.list)
	for i := range s.gate.service.kinds.list {
		s.gate.service.kinds.list[i].present = 0
	}
	g.shadow = s
	a := &Arrival{Cost: 1, Priority: spillway.Low, Deadline: Never}
	for left := min(g.inFlight, g.Limit()); left > 0; left -= a.Cost {
		a.Cost = min(left, 1+left/pieces)
		s.gate.admit(now, levels-1, kind, a)
		g.shadowStarts()
	}
}

// Force admits work regardless of the limit, unless the intake is closed. A dry run counts the
// refusals of an enforcing gate, and enforces nothing. mayWait is whether the work could have
// waited. would is the reason for which the gate's owner would have refused the work without asking
// the gate, or zero.
func (g *Gate) Force(now time.Duration, a Arrival, mayWait bool, would spillway.Reason) Decision {
	lv := priority.Level(a.Priority)
	g.demandOf(now, lv, g.slotsFor(&a))
	kind := g.countForKind(now, lv, &a)
	if g.closed != 0 {
		g.ledger[lv].rejected[g.closed]++
		return Decision{Action: Reject, Reason: g.closed}
	}
	if g.shadow == nil {
		g.shadowBegins(now)
	}
	d := Decision{Action: Admit}
	if would == 0 {
		would = g.shadowRefuses(now, kind, a, mayWait)
	}
	if would != 0 {
		d = g.unenforced(lv, Decision{Action: Reject, Reason: would})
	}
	g.admit(now, lv, kind, &a)
	if a.Traits&Long == 0 {
		g.shadow.forced = g.seq
		g.shadow.passive.Admit(now, g.load())
	}
	return d
}

// shadowRefuses lets the shadow decide, and returns why the shadow refuses the work, or zero.
func (g *Gate) shadowRefuses(now time.Duration, kind uint8, a Arrival, mayWait bool) spillway.Reason {
	s := g.shadow
	s.gate.follow(g)
	g.shadowAdvances(now)
	if n := s.gate.queued; mayWait && n >= mostShadowWaiters && n < g.cfg.QueueSize {
		return 0
	}
	a.Traits &^= DryRun
	var w, next *Waiter
	if mayWait {
		if w = s.free; w == nil {
			w = new(Waiter)
		}
		next = w.next
	}
	s.gate.givenKind = kind
	d := s.gate.Arrive(now, a, w)
	switch d.Action {
	case Reject:
		return d.Reason
	case Wait:
		s.free = next
		if d.Preempted != nil {
			g.shadowDrops(d.Preempted, spillway.Preempted)
		}
	case Admit:
		g.shadowStarts()
	}
	return 0
}

// shadowAdvances brings the shadow up to now: work ends, and waiters start.
func (g *Gate) shadowAdvances(now time.Duration) {
	s := g.shadow
	if len(s.early) > 0 && g.service.known() {
		for _, w := range s.early {
			g.shadowEnds(now, w)
		}
		s.early = nil
	}
	for len(s.ends) > 0 && s.ends[0].at <= now {
		e := s.ends.pop()
		s.gate.End(e.at, e.Grant, e.outcome)
		g.shadowGrants(e.at)
	}
	g.shadowGrants(now) // the limit may have risen
}

// shadowGrants starts waiters of the shadow, and refuses waiters whose time is over.
func (g *Gate) shadowGrants(now time.Duration) {
	s := g.shadow
	for i := range s.gate.queues {
		for w := s.gate.queues[i].first; w != nil; w = s.gate.queues[i].first { // later waiters once they are first
			if now >= w.deadline {
				g.shadowDrops(w, spillway.DeadlineTooClose)
			} else if now-w.since >= g.cfg.MaxWait {
				g.shadowDrops(w, spillway.WaitTooLong)
			} else {
				break
			}
		}
	}
	for {
		w, granted := s.gate.Next(now)
		switch {
		case w == nil:
			return
		case !granted:
			g.shadowDrops(w, spillway.DeadlineTooClose)
			continue
		}
		s.gate.Taken(w, now-w.since)
		g.shadowStarts()
		w.next, s.free = s.free, w
	}
}

// shadowStarts schedules the end of the work that the shadow has just started.
func (g *Gate) shadowStarts() {
	s := g.shadow
	switch w := s.gate.latest; {
	case w.Long:
		s.gate.End(w.Start, w, limit.Unknown)
	case !g.service.known():
		s.early = append(s.early, w)
	default:
		g.shadowEnds(w.Start, w)
	}
}

func (g *Gate) shadowEnds(now time.Duration, w Grant) {
	s := g.shadow
	e := shadowEnd{Grant: w, outcome: limit.Success}
	e.at = now + time.Duration(min(g.service.holdOf(priority.Level(w.Priority), w.Kind)*s.shape.draw(), float64(Never/4)))
	if w.Deadline < e.at {
		e.at, e.outcome = max(w.Deadline, now), limit.Deadline
	}
	s.ends.push(e)
}

// shadowDrops refuses a waiter of the shadow. Its work runs all the same.
func (g *Gate) shadowDrops(w *Waiter, reason spillway.Reason) {
	s := g.shadow
	if w.queued {
		s.gate.take(w)
	}
	g.ledger[w.level].would[reason]++
	if len(s.late) < mostLateRefusals {
		s.late = append(s.late, LateRefusal{priority.Of(w.level), reason})
	}
	w.next, s.free = s.free, w
}

// LateRefusals returns the work that a dry run would have queued and then refused, since its last
// call. The slice is valid until the next call of Force.
func (g *Gate) LateRefusals() []LateRefusal {
	if g.shadow == nil || len(g.shadow.late) == 0 {
		return nil
	}
	late := g.shadow.late
	g.shadow.late = late[:0]
	return late
}

// WouldRetryAfter is RetryAfter in a dry run, by the work ahead in the shadow.
func (g *Gate) WouldRetryAfter(p spillway.Priority) time.Duration {
	if g.shadow == nil {
		return g.RetryAfter(p)
	}
	return g.shadow.gate.RetryAfter(p)
}

// Estimate describes how reliable the decisions of a dry run are. unsafe reports whether they
// must not be trusted, for a reason that is in text.
func (g *Gate) Estimate() (text string, unsafe bool) {
	if g.shadow == nil {
		return newPassiveLaw().State(), false
	}
	return g.shadow.passive.State(), g.shadow.passive.Unsafe()
}

// timeInShadow estimates how long ended work would have taken within the limit.
func (g *Gate) timeInShadow(s limit.Sample, lv int) time.Duration {
	elapsed := s.End - s.Start
	if s.Seq > g.shadow.forced { // the gate enforces again
		g.shadow = nil
		return elapsed
	}
	g.shadow.passive.Observe(s, g.load())
	estimate := g.shadow.passive.Within(s, g.Limit())
	if hold := g.service.holdOf(lv, s.Class); estimate == elapsed && hold > 0 && (s.Outcome == limit.Success || s.Outcome == limit.Failed) {
		g.shadow.shape.add(float64(elapsed) / hold)
	}
	return estimate
}
