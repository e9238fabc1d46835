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
	Queued         int                       // callers waiting
	QueuedBy       map[spillway.Priority]int // of those, where any

	// Demand is the work that arrived in the last seconds over what the limit
	// allows: above one, more comes than can be served. Shedding keeps the
	// processors calm; scale by this.
	Demand float64

	Offered, Admitted, Completed uint64
	Rejected                     uint64 // over all reasons
	RejectedBy                   map[spillway.Reason]uint64
	Cancelled                    uint64 // the caller's context ended before it was admitted
	WouldReject                  uint64 // admitted by a dry run that would have been refused

	Leaked uint64 // permits reported as never ended; some may have ended late
	Leaks  []Leak // those that are overdue now, oldest first

	QueueWait *histogram.Histogram // of admitted work, nanoseconds
	Service   *histogram.Histogram // from admission to the end, nanoseconds; not of Long work
}

// Stats returns the counts so far. The picture is a copy and costs some
// microseconds; call it at the pace of a metrics scrape, not per request.
func (l *Limiter) Stats() Stats {
	now := l.lock(l.now())
	if l.law.moving() { // else nothing could have changed
		l.law.tick(now)
		l.grant(now)
	}
	l.memos.fold(l.gate)
	c := l.gate.Counts()
	s := Stats{
		Name: l.name, Mode: Mode(l.mode.Load()),
		Law: limit.ReporterOf(l.law.Law).Name(), State: l.state(now), Decisions: l.log.All(), Pressure: l.press.Pressure,
		Limit: l.gate.Limit(), InFlight: l.gate.InFlight(), LongInFlight: l.gate.Long(), Queued: l.gate.Queued(),
		Demand:   l.gate.Demand(now),
		QueuedBy: map[spillway.Priority]int{},
		Offered:  c.Offered, Admitted: c.Admitted, Completed: c.Completed,
		Rejected: c.Rejected(), RejectedBy: map[spillway.Reason]uint64{},
		Cancelled: c.Cancelled, WouldReject: c.WouldReject,
	}
	if oldest := l.running.oldest; oldest != nil {
		s.OldestInFlight = now - oldest.grant.Start
	}
	for p := spillway.Low; p <= spillway.Critical; p++ {
		if n := l.gate.QueuedBy(p); n > 0 {
			s.QueuedBy[p] = n
		}
	}
	for _, r := range spillway.Reasons() {
		if n := c.RejectedBy[r]; n > 0 {
			s.RejectedBy[r] = n
		}
	}
	s.QueueWait, s.Service = l.gate.Histograms()
	var fresh []Leak
	s.Leaks, fresh = l.leaks(now)
	s.Leaked = l.leaked
	l.trim()
	l.unlock()
	l.report(fresh)
	return s
}
