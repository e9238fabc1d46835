package limiter

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/limit"
)

// Stats is a consistent picture of a limiter. At any time Offered = Admitted +
// Rejected + Cancelled + Queued; Admitted - Completed is how many pieces of work
// run, which InFlight counts in slots, and LongInFlight where they hold none.
type Stats struct {
	Name string
	Mode Mode

	// Why the limit is what it is: the law's name; in words what it is doing, what
	// overrules it (a signal, a bound, the slow start, the estimate of a dry run) and
	// what keeps it from learning; the last changes, by it or by those, oldest first;
	// and what the signals say.
	Law       string
	State     string
	Decisions []limit.Decision
	Pressure  Pressure

	Limit          int                       // slots
	InFlight       int                       // slots in use
	LongInFlight   int                       // pieces of work admitted as Long, which hold no slot
	OldestInFlight time.Duration             // how long the oldest work has run that is not Long
	Stalled        bool                      // work runs and for long none has ended: the backend may hang
	Queued         int                       // callers waiting
	QueuedBy       map[spillway.Priority]int // of those, where any

	// Demand is the work that arrived in the last seconds over what could be done in
	// that time within the limit: above one, more comes than can be served. Where slots
	// are short and nothing is done, as when the backend hangs, a lease is over or a dry run
	// collapses, Demand is up to 100. Shedding keeps the processors calm; scale by this.
	Demand float64

	// Lost is the share of the work that ended of late, and ran into its deadline, was
	// given up by its caller or was refused by what is behind; zero while that is less than
	// three quarters, and some seconds after the last end. Near one, work is done
	// for nothing: what is behind is down, or far more runs than it can do.
	Lost float64

	Offered, Admitted, Completed uint64
	Rejected                     uint64 // over all reasons
	RejectedBy                   map[spillway.Reason]uint64
	Cancelled                    uint64 // the caller's context ended before it was admitted

	// What a dry run has admitted that would have been refused; in a dry run how much
	// of that to believe, in words, else empty; and whether the answer is: not at all,
	// because the backend gets less done the more it is asked.
	WouldReject    uint64
	WouldRejectBy  map[spillway.Reason]uint64
	Estimate       string
	EstimateUnsafe bool

	// ByPriority is the ledger of each priority that was used.
	ByPriority map[spillway.Priority]PriorityStats

	Leaked uint64 // permits reported as never ended; some may have ended late
	Leaks  []Leak // those that are overdue now, oldest first

	QueueWait *histogram.Histogram // of admitted work, nanoseconds
	Service   *histogram.Histogram // from admission to the end, nanoseconds; not of Long work
}

// PriorityStats is the ledger of the work of one priority. At any time Offered =
// Admitted + Rejected + Cancelled + Queued, as in Stats. Fields may be added.
type PriorityStats struct {
	Offered, Admitted, Completed, Rejected, Cancelled, WouldReject uint64

	Queued   int // callers waiting
	InFlight int // slots in use
}

// Stats returns the counts so far. The picture is a copy and costs some
// microseconds; call it at the pace of a metrics scrape, not per request.
func (l *Limiter) Stats() Stats {
	now := l.lock(l.now())
	if l.over.moving() && (l.over.began || l.over.rampFor == 0) { // a slow start begins with work
		l.tick(now)
		l.grant(now)
	}
	l.memos.fold(l.gate)
	c := l.gate.Counts()
	s := Stats{
		Name: l.name, Mode: Mode(l.mode.Load()),
		Law: limit.ReporterOf(l.law).Name(), State: l.state(now), Decisions: l.log.All(), Pressure: l.press.Pressure,
		Limit: l.gate.Limit(), InFlight: l.gate.InFlight(), LongInFlight: l.gate.Long(), Queued: l.gate.Queued(),
		Demand: l.gate.Demand(now), Lost: l.gate.Lost(now),
		QueuedBy: map[spillway.Priority]int{},
		Offered:  c.Offered, Admitted: c.Admitted, Completed: c.Completed,
		Rejected: c.Rejected(), RejectedBy: map[spillway.Reason]uint64{},
		Cancelled: c.Cancelled, WouldReject: c.WouldReject(), WouldRejectBy: map[spillway.Reason]uint64{},
		ByPriority: map[spillway.Priority]PriorityStats{},
	}
	if oldest := l.running.oldest; oldest != nil {
		s.OldestInFlight = now - oldest.grant.Start
		s.Stalled = l.gate.Still(now, oldest.grant.Start) > 0
	}
	for p := spillway.Low; p <= spillway.Critical; p++ {
		c, queued := l.gate.CountsOf(p), l.gate.QueuedBy(p)
		if queued > 0 {
			s.QueuedBy[p] = queued
		}
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
	s.QueueWait, s.Service = l.gate.Histograms()
	var fresh []Leak
	s.Leaks, fresh = l.leaks(now)
	s.Leaked = l.leaked
	l.trim()
	l.unlockAndReport(fresh)
	l.raise()
	return s
}
