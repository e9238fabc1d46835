package workerpool

import (
	"fmt"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/internal/handoff"
	"github.com/spillway-go/spillway/internal/laws"
	"github.com/spillway-go/spillway/limit"
)

// Stats is a consistent snapshot of a pool. At any time Offered = Admitted + Rejected + Cancelled +
// Dropped + Queued + Blocked, and Admitted = Completed + InFlight.
type Stats struct {
	Name string

	// State describes in words what the law is doing. If jobs run and wait but none ends for long,
	// State begins with the duration of the stall and its possible cause.
	State string

	Limit     int // most jobs that may run now
	QueueSize int // places in the queue now

	// Demand is the recently arrived work over the work that the limit allows. Above one, arrivals
	// exceed capacity. Zero until the first jobs have ended.
	Demand float64

	Workers  int // goroutines
	InFlight int // jobs taken by a worker; the other workers are idle
	Queued   int // accepted jobs waiting for a worker
	Blocked  int // submitters waiting for room

	Offered   uint64
	Admitted  uint64 // taken by a worker
	Completed uint64 // admitted and ended, however they ended
	// Ended has the completed jobs by outcome: a panic and Goexit are failures. The sum is Completed.
	Ended      map[limit.Outcome]uint64
	Panicked   uint64 // completed jobs with a panic
	Rejected   uint64 // for all reasons
	RejectedBy map[spillway.Reason]uint64
	Cancelled  uint64 // own context ended before the start
	Dropped    uint64 // accepted, and dropped by Drain or Close

	// QueueWait holds the waits of jobs that started; Service holds the run times of jobs that
	// returned. Both are in nanoseconds. At high job rates the pool measures only some jobs, and
	// each measured job counts for several.
	QueueWait, Service *histogram.Histogram
}

// Stats returns the counts so far. The picture is a copy and costs some
// microseconds; call it at the pace of a metrics scrape, not per job.
func (p *Pool) Stats() Stats {
	p.mustBeMade()
	c := &p.ctl
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Stats{
		Name: p.cfg.Name, State: "fixed",
		Limit: c.limit, QueueSize: c.size,
		RejectedBy: map[spillway.Reason]uint64{},
		QueueWait:  c.waits.Clone(), Service: c.runs.Clone(),
	}
	if c.law != nil {
		s.State = laws.ReporterOf(c.law).State()
	} else if c.growAt > 0 {
		s.State = "grows while the queue is filled"
	}
	if c.mean > 0 {
		s.Demand = c.offered * c.mean / 1e9 / float64(c.limit)
	}
	pic := p.queue.Picture()
	s.State = c.stands(pic) + s.State
	s.Workers, s.InFlight, s.Queued, s.Blocked = pic.Workers, pic.Active, sum(pic.Queued), sum(pic.Waiting)
	s.Completed, s.Dropped = pic.Ended, pic.Dropped
	s.Admitted = s.Completed + uint64(s.InFlight)
	s.Ended = map[limit.Outcome]uint64{}
	succeeded := s.Completed
	for o := range p.ended {
		if n := min(p.ended[o].Load(), succeeded); n > 0 { // ends since the picture do not count
			s.Ended[limit.Outcome(o)] = n
			succeeded -= n
		}
	}
	if succeeded > 0 {
		s.Ended[limit.Success] = succeeded
	}
	s.Panicked = min(p.panicked.Load(), s.Ended[limit.Failed])
	for _, r := range spillway.Reasons() {
		n := p.refusals.count(r)
		switch r {
		case spillway.ReasonWaitTooLong:
			n += pic.Expired
		case spillway.Reason(p.firstFor.Load()):
			n += pic.Refused
		}
		if n > 0 {
			s.RejectedBy[r] = n
			s.Rejected += n
		}
	}
	before := p.gone.Load() + pic.Left // contexts that ended before acceptance
	s.Cancelled = before + pic.Void + pic.Removed
	s.Offered = sum(pic.Accepted) + s.Rejected + before + uint64(s.Blocked)
	return s
}

// nested explains how a pool can stall although no job hangs: a job holds its worker while it waits
// for another worker of the same pool.
const nested = "jobs may wait here for jobs of their own pool, by Submit or Do inside a job: use TrySubmit there, or give each layer of jobs a pool of its own"

// stands describes a stall: how long no job has ended while jobs wait and all slots are busy. It is
// empty without a stall. The caller holds the lock.
func (c *control) stands(pic handoff.Picture) string {
	if pic.Active < c.limit || sum(pic.Queued)+sum(pic.Waiting) == 0 || c.still < time.Second || float64(c.still) < 3*c.mean {
		return ""
	}
	return fmt.Sprintf("nothing has ended for %v with %d in flight; %s; ", c.still.Round(time.Second), pic.Active, nested)
}
