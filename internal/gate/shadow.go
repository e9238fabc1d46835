package gate

import (
	"slices"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/places"
	"github.com/spillway-go/spillway/limit"
)

// shadow is what a dry run would be if it enforced: a gate of its own with the same
// limit, which decides about the same arrivals. What it would have refused is not in
// it, although it runs. Work ends in it when it would have, had no more run than may:
// once a queue stands in the backend, more than the limit runs at all times and all of
// it takes long, but that is what a limit would prevent.
type shadow struct {
	watch  *limit.Passive // estimates how long work would take
	gate   *Gate
	ends   ends
	shape  shape
	free   *Waiter // linked by next
	early  []Grant // runs in it, and nothing is known yet of how long work takes
	late   []Late  // not yet told
	forced uint64  // the latest work that was not asked
}

// Late is work that a dry run would have refused after it had let it wait.
type Late struct {
	Priority spillway.Priority
	Reason   spillway.Reason
}

// pieces is from how many slots in use on a shadow begins with pieces of more than one:
// where slots are bytes, billions are in use.
const pieces = 1 << 12

// mostLate bounds what is kept for an owner that does not ask.
const mostLate = 1024

// shadowBegins starts a shadow with what is known and what runs.
func (g *Gate) shadowBegins(now time.Duration) {
	s := &shadow{watch: limit.NewPassive(), gate: New(g.cfg)}
	s.gate.follow(g)
	kind := g.kind(places.Name(0).Key(levels-1, places.Scales-1), 0)
	s.gate.demand, s.gate.spent, s.gate.service, s.gate.follows = g.demand, g.spent, g.service, true
	s.gate.service.kinds.list = slices.Clone(g.service.kinds.list)
	for i := range s.gate.service.kinds.list {
		s.gate.service.kinds.list[i].held = 0
	}
	g.shadow = s
	a := &Arrival{Cost: 1, Priority: spillway.Low, Deadline: Never}
	for left := min(g.inFlight, g.Limit()); left > 0; left -= a.Cost {
		a.Cost = min(left, 1+left/pieces)
		s.gate.admit(now, levels-1, kind, a)
		g.shadowStarts()
	}
}

// Force admits work whatever the limit says, unless the intake is closed: a dry
// run counts what it would have refused, and enforces nothing. mayWait is
// whether the work could have waited.
func (g *Gate) Force(now time.Duration, a Arrival, mayWait bool) Decision {
	lv := level(a.Priority)
	g.demandOf(now, lv, g.asks(&a))
	kind := g.arrived(now, lv, &a)
	if g.closed != 0 {
		g.ledger[lv].rejected[g.closed]++
		return Decision{Verdict: Reject, Reason: g.closed}
	}
	if g.shadow == nil {
		g.shadowBegins(now)
	}
	d := Decision{Verdict: Admit}
	if would := g.shadowRefuses(now, kind, a, mayWait); would != 0 {
		d = g.unenforced(lv, Decision{Verdict: Reject, Reason: would})
	}
	g.admit(now, lv, kind, &a)
	if a.Traits&Long == 0 {
		g.shadow.forced = g.seq
		g.shadow.watch.Admit(now, g.load())
	}
	return d
}

// shadowRefuses lets the shadow decide: why it refuses the work, or zero.
func (g *Gate) shadowRefuses(now time.Duration, kind uint8, a Arrival, mayWait bool) spillway.Reason {
	s := g.shadow
	s.gate.follow(g)
	g.advance(now)
	a.Traits &^= DryRun
	var w, next *Waiter
	if mayWait {
		if w = s.free; w == nil {
			w = new(Waiter)
		}
		next = w.next
	}
	s.gate.owners = kind
	d := s.gate.Arrive(now, a, w)
	switch d.Verdict {
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

// advance brings the shadow up to a time: work ends, and other work takes its place.
func (g *Gate) advance(now time.Duration) {
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

// shadowGrants lets the shadow's waiters run that may.
func (g *Gate) shadowGrants(now time.Duration) {
	s := g.shadow
	for i := range s.gate.queues {
		for w := s.gate.queues[i].first; w != nil; w = s.gate.queues[i].first { // those behind it when it is their turn
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

// shadowStarts decides when work ends that the shadow's gate has just let run.
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
	e.at = now + time.Duration(min(g.service.holdOf(level(w.Priority), w.Kind)*s.shape.draw(), float64(Never/4)))
	if w.Deadline < e.at {
		e.at, e.outcome = max(w.Deadline, now), limit.Deadline
	}
	s.ends.push(e)
}

// shadowDrops refuses a waiter of the shadow, whose work runs all the same.
func (g *Gate) shadowDrops(w *Waiter, reason spillway.Reason) {
	s := g.shadow
	if w.queued {
		s.gate.take(w)
	}
	g.ledger[w.level].would[reason]++
	if len(s.late) < mostLate {
		s.late = append(s.late, Late{priority(w.level), reason})
	}
	w.next, s.free = s.free, w
}

// Late returns what a dry run would have refused since it was asked last, although it
// had let it wait; the slice is valid until then.
func (g *Gate) Late() []Late {
	if g.shadow == nil || len(g.shadow.late) == 0 {
		return nil
	}
	late := g.shadow.late
	g.shadow.late = late[:0]
	return late
}

// WouldRetryAfter is RetryAfter in a dry run: what would be ahead of the work.
func (g *Gate) WouldRetryAfter(p spillway.Priority) time.Duration {
	if g.shadow == nil {
		return g.RetryAfter(p)
	}
	return g.shadow.gate.RetryAfter(p)
}

// Estimate says in words how much of a dry run's decisions to believe, and whether
// they are unsafe: the backend gets less done the more it is asked.
func (g *Gate) Estimate() (text string, unsafe bool) {
	if g.shadow == nil {
		return limit.NewPassive().State(), false
	}
	return g.shadow.watch.State(), g.shadow.watch.Unsafe()
}

// shadowed is how long ended work would have taken, had the limit been enforced.
func (g *Gate) shadowed(s limit.Sample, lv int) time.Duration {
	took := s.End - s.Start
	if s.Seq > g.shadow.forced { // enforced again
		g.shadow = nil
		return took
	}
	g.shadow.watch.Observe(s, g.load())
	estimate := g.shadow.watch.Within(s, g.Limit())
	if hold := g.service.holdOf(lv, s.Class); estimate == took && hold > 0 && (s.Outcome == limit.Success || s.Outcome == limit.Failed) {
		g.shadow.shape.add(float64(took) / hold)
	}
	return estimate
}
