package workerpool

import (
	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/limit"
)

// Stats is a consistent picture of a pool. At any time Submitted = Completed +
// Rejected + Cancelled + Dropped + Queued + Running + Blocked.
type Stats struct {
	Name string

	// Why the limit is what it is: the law's name, what it is doing in words, and
	// its last changes, oldest first. The name is "fixed" where MaxWorkers
	// decides and "grow" where GrowAt does.
	Law       string
	State     string
	Decisions []limit.Decision

	Limit                 int // most jobs that may run now
	MaxWorkers, QueueSize int

	// Demand is the work that arrived lately over what the limit allows: above
	// one, more comes than can be done. Zero until the first jobs have ended.
	Demand float64

	Workers  int // goroutines
	Idle     int // of them, without a job
	Running  int // jobs taken by a worker
	Queued   int // accepted jobs waiting for a worker
	QueuedBy map[spillway.Priority]int
	Blocked  int // submitters waiting for room

	Submitted  uint64
	Started    uint64
	Completed  uint64 // started and ended, however they ended
	Failed     uint64 // of the completed: with an error, a panic or Goexit
	Panicked   uint64 // of the failed
	Rejected   uint64 // over all reasons
	RejectedBy map[spillway.Reason]uint64
	Cancelled  uint64 // their own context ended before they started
	Dropped    uint64 // accepted, and dropped by Drain or Close

	// QueueWait and RunTime, in nanoseconds, of jobs that started and of jobs that
	// returned. Where jobs are many only some are measured, and each counts for
	// as many.
	QueueWait, RunTime *histogram.Histogram
}

// Stats returns the counts so far. The picture is a copy and costs some
// microseconds; call it at the pace of a metrics scrape, not per job.
func (p *Pool) Stats() Stats {
	p.made()
	c := &p.ctl
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Stats{
		Name: p.cfg.Name, Law: "fixed", State: "fixed",
		Limit: c.limit, MaxWorkers: c.top, QueueSize: c.size,
		QueuedBy: map[spillway.Priority]int{}, RejectedBy: map[spillway.Reason]uint64{},
		QueueWait: c.waits.Clone(), RunTime: c.runs.Clone(),
	}
	if c.law != nil {
		law := limit.ReporterOf(c.law)
		s.Law, s.State, s.Decisions = law.Name(), law.State(), c.log.All()
	} else if c.growAt > 0 {
		s.Law, s.State = "grow", "grows while the queue is filled"
	}
	if c.mean > 0 {
		s.Demand = c.offered * c.mean / 1e9 / float64(c.limit)
	}
	pic := p.queue.Picture()
	s.Workers, s.Idle, s.Running, s.Blocked = pic.Workers, pic.Workers-pic.Active, pic.Active, sum(pic.Waiting)
	for lv, n := range pic.Queued {
		if n > 0 {
			s.QueuedBy[spillway.Critical-spillway.Priority(lv)] = n
		}
		s.Queued += n
	}
	s.Completed, s.Dropped = pic.Ended, pic.Dropped
	s.Started = s.Completed + uint64(s.Running)
	s.Panicked = min(p.panicked.Load(), s.Completed)
	s.Failed = min(max(p.failed.Load(), s.Panicked), s.Completed)
	for _, r := range spillway.Reasons() {
		n := p.refusals.count(r)
		switch r {
		case spillway.WaitTooLong:
			n += pic.Expired
		case spillway.Reason(p.firstFor.Load()):
			n += pic.Refused
		}
		if n > 0 {
			s.RejectedBy[r] = n
			s.Rejected += n
		}
	}
	before := p.gone.Load() + pic.Left // it was accepted
	s.Cancelled = before + pic.Void + pic.Removed
	s.Submitted = sum(pic.Accepted) + s.Rejected + before + uint64(s.Blocked)
	return s
}
