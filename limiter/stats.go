package limiter

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/laws"
	"github.com/spillway-go/spillway/limit"
)

// Stats is a consistent snapshot of a limiter. At any time Offered = Admitted +
// Rejected + Cancelled + Queued. Admitted - Completed is the number of running pieces of
// work: InFlight counts their slots, and LongInFlight counts the pieces without a slot.
type Stats struct {
	Name string
	Mode Mode

	Law string // name of the law
	// State says in words what the law is doing, what overrules the law (a signal, a bound,
	// a lease, the slow start, the estimate of a dry run) and what keeps it from learning.
	State     string
	Decisions []limit.Decision // last changes of the limit, by the law or by an overruling, oldest first

	Limit        int // slots
	InFlight     int // slots in use
	LongInFlight int // pieces of work admitted as Long, which hold no slot
	Paused       int // pieces of work that wait for their clients and have given their slots to others
	// Parked is how much overdue work runs without its slots, because others were served beside
	// such work in their usual time: see Calls that only wait in the package documentation.
	Parked         int
	OldestInFlight time.Duration // for how long work has run without a pause, at most; long work does not count
	OldestKind     string        // Request.Kind of that work
	Stalled        bool          // work runs but none has ended for long: the backend may hang
	Queued         int           // callers waiting

	// Demand is the work that arrived in the last seconds, divided by the work that could
	// be done in the same time within the limit. Above one, more work arrives than can be
	// served. If slots are short and no work gets done, as when the backend hangs, a lease
	// is over or a dry run collapses, Demand is up to 100. While processors are short, Demand
	// is at least the arrivals over what the processors can do. Scale by Demand, because load
	// shedding keeps processor usage low.
	Demand float64

	// Shed is the share of the arrivals that is shed for lack of processors now. Zero: processors
	// are not short. See Config.IgnoreProcessors.
	Shed float64

	// Lost is the share of recently ended work that ran into its deadline, was cancelled
	// by its caller or was refused by the backend. Lost is zero while the share is below
	// three quarters, and some seconds after the last end. Near one, work is done in
	// vain: the backend is down, or far more work runs than the backend can do.
	Lost float64

	Offered, Admitted, Completed uint64
	Rejected                     uint64 // for all reasons
	RejectedBy                   map[spillway.Reason]uint64
	Cancelled                    uint64 // the caller's context ended before the admission; see Limiter.Front

	WouldReject   uint64                     // admitted by a dry run, but refused under enforcement
	WouldRejectBy map[spillway.Reason]uint64 // WouldReject by reason

	// Estimate says in words how far to trust WouldReject; empty outside of a dry run.
	Estimate string
	// EstimateUnsafe says not to trust WouldReject at all: the backend gets less done the
	// more work it receives, became slower, or was only seen overloaded.
	EstimateUnsafe bool

	// Ended has the ends of admitted work by outcome. Their sum is Completed. Long work whose
	// caller leaves has succeeded: streams end so.
	Ended map[limit.Outcome]uint64
	// ByKind has the counts of each Request.Kind. Work without a kind, or whose kind is not
	// told apart, is in ByKind[""]. ByKind knows the first 32 kinds that were frequent enough to
	// be told apart, so that it can label metrics. The limiters of a Keyed count all work in
	// ByKind[""]: a kind takes some kilobytes, and there may be many keys.
	ByKind map[string]KindStats
	// ByPriority has the counts of each priority that was used.
	ByPriority map[spillway.Priority]PriorityStats

	Leaked uint64 // permits reported as never ended; some may have ended late
	Leaks  []Leak // permits that are overdue now, oldest first

	QueueWait *histogram.Histogram // of admitted work, nanoseconds
	Service   *histogram.Histogram // from admission to the end, nanoseconds; without Long work
}

// KindStats has the counts of the work of one kind. The sums over all kinds are those of Stats; Rejected may
// differ for a moment while many are refused. Fields may be added.
type KindStats struct {
	InFlight int // slots in use
	Parked   int
	Rejected uint64
	Ended    map[limit.Outcome]uint64 // ends of admitted work
	Service  *histogram.Histogram     // as Stats.Service
}

// PriorityStats has the counts of one priority. At any time Offered =
// Admitted + Rejected + Cancelled + Queued, as in Stats. Fields may be added.
type PriorityStats struct {
	Offered, Admitted, Completed, Rejected, Cancelled, WouldReject uint64

	Queued   int // callers waiting
	InFlight int // slots in use
}

// Stats returns the counts so far. The snapshot is a copy and costs 20 to 250 µs, by the number of kinds (go
// test ./limiter -bench Stats): call Stats at the pace of a metrics scrape, not per request.
func (l *Limiter) Stats() Stats {
	processors := l.door.stats()
	now := l.lock(l.now())
	if l.over.moving() && (l.over.began || l.over.rampFor == 0) { // a slow start begins with the first arrival
		l.tick(now)
		l.grant(now)
	}
	l.describeLaw()
	l.memos.fold(l.gate)
	c := l.gate.Counts()
	s := Stats{
		Name: l.name, Mode: Mode(l.mode.Load()),
		Law: laws.ReporterOf(l.law).Name(), State: l.state(now, processors), Decisions: l.log.All(),
		Limit: l.gate.Limit(), InFlight: l.gate.InFlight(), LongInFlight: l.gate.Long(), Queued: l.gate.Queued(),
		Demand: l.gate.Demand(now), Lost: l.gate.Lost(now), Shed: 1 - processors.Admitted,
		Offered: c.Offered, Admitted: c.Admitted, Completed: c.Completed,
		Rejected: c.Rejected(), RejectedBy: map[spillway.Reason]uint64{},
		Cancelled: c.Cancelled, WouldReject: c.WouldReject(), WouldRejectBy: map[spillway.Reason]uint64{},
		ByPriority: map[spillway.Priority]PriorityStats{},
	}
	s.Paused, s.Parked = l.gate.Aside()
	if s.Mode == Enforce && processors.Admitted < 1 {
		s.Demand = max(s.Demand, 1/processors.Admitted)
	}
	if oldest := l.gate.Slowest(); oldest != nil {
		s.OldestInFlight, s.OldestKind = now-oldest.Since(), l.gate.NameOf(oldest)
		s.Stalled = l.gate.StalledFor(now, oldest.Since()) > 0
	}
	for p := spillway.Low; p <= spillway.Critical; p++ {
		c, queued := l.gate.CountsOf(p), l.gate.QueuedBy(p)
		if c.Offered > 0 {
			s.ByPriority[p] = PriorityStats{
				c.Offered, c.Admitted, c.Completed, c.Rejected(), c.Cancelled, c.WouldReject(), queued, l.gate.InFlightBy(p),
			}
		}
	}
	for _, r := range spillway.Reasons() {
		if n := c.RejectedBy[r]; n > 0 {
			s.RejectedBy[r] = n
		}
		if n := c.WouldRejectBy[r]; n > 0 {
			s.WouldRejectBy[r] = n
		}
	}
	if s.Mode == DryRun {
		s.Estimate, s.EstimateUnsafe = l.gate.Estimate()
	}
	s.QueueWait = l.gate.QueueWait()
	s.addKinds(l.gate.Tallies())
	s.Leaks = l.leaks(now)
	s.Leaked = l.leaked
	l.trim()
	l.unlock()
	l.raise()
	return s
}

// addKinds fills in what the tallies of the gate know.
func (s *Stats) addKinds(all []gate.Tally) {
	s.Service, s.Ended, s.ByKind = &histogram.Histogram{}, map[limit.Outcome]uint64{}, make(map[string]KindStats, len(all))
	for i := range all {
		t := &all[i]
		k := KindStats{t.InFlight, t.Parked, t.Rejected, map[limit.Outcome]uint64{}, &t.Service}
		for o, n := range t.Ended {
			if n > 0 {
				k.Ended[limit.Outcome(o)] = n
				s.Ended[limit.Outcome(o)] += n
			}
		}
		s.ByKind[t.Name] = k
		s.Service.Merge(&t.Service)
	}
}
