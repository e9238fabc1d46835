package metrics

import (
	"maps"
	"sync"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/workerpool"
)

const (
	workers = iota
	jobs
	queuedJobs
	poolLimit
	poolDemand
	jobInQueue
	jobDuration
)

var poolMetrics = []Metric{
	workers:     {"spillway.pool.workers", UpDownCounter, "{worker}", "Worker goroutines, by state.", []string{"state"}},
	jobs:        {"spillway.pool.jobs", Counter, "{job}", "Jobs decided, by result: completed, failed, late (ended by its deadline), left (its caller left while it ran), refused_below, panicked, cancelled (before it started), dropped, or the reason of a rejection. Submitted jobs are their sum, and those queued or running.", []string{"result"}},
	queuedJobs:  {"spillway.pool.queued_jobs", UpDownCounter, "{job}", "Jobs that wait for a worker, or for room in the queue.", nil},
	poolLimit:   {"spillway.pool.limit", UpDownCounter, "{job}", "Jobs that may run at one time.", nil},
	poolDemand:  {"spillway.pool.demand", Gauge, "", "Work submitted lately over what the limit allows; above 1, more comes than can be done. Scale by this.", nil},
	jobInQueue:  {"spillway.pool.job.time_in_queue", Histogram, "s", "How long started jobs waited.", nil},
	jobDuration: {"spillway.pool.job.duration", Histogram, "s", "How long jobs that returned took, without the wait.", nil},
}

// shownPool is a pool and the values of its last read.
type shownPool struct {
	*workerpool.Pool

	mu   sync.Mutex
	last map[string]uint64 // by result
}

// Pool returns a worker pool as metrics.
func Pool(p *workerpool.Pool) *Source {
	shown := &shownPool{Pool: p, last: map[string]uint64{}}
	return &Source{kind: "pool", name: clean(p.Stats().Name), metrics: poolMetrics, read: shown.read}
}

func (p *shownPool) read() []Sample {
	s, ended := p.ended()
	all := gather(28)
	all.put(workers, float64(s.Workers-s.InFlight), "idle")
	all.put(workers, float64(s.InFlight), "busy")
	for _, result := range jobResults {
		all.put(jobs, float64(ended[result]), result)
	}
	all.put(jobs, float64(s.Cancelled), "cancelled")
	all.put(jobs, float64(s.Dropped), "dropped")
	all.reasons(jobs, s.RejectedBy)
	all.put(queuedJobs, float64(s.Queued+s.Blocked))
	all.put(poolLimit, float64(s.Limit))
	all.put(poolDemand, s.Demand)
	all.times(jobInQueue, s.QueueWait)
	all.times(jobDuration, s.Service)
	return all.samples
}

// jobResults are the results of jobs that have ended.
var jobResults = []string{"late", "left", "refused_below", "panicked", "failed", "completed"}

// ended returns the ended jobs by result. Their sum is Completed. The pool may count a failure a moment before
// the end of its job. Then another result would be too low by one, and Prometheus takes a counter that falls for
// a restart. So ended adds to the last values, and at most as many as have ended since.
func (p *shownPool) ended() (workerpool.Stats, map[string]uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.Stats()
	left := s.Completed
	for _, n := range p.last {
		left -= n
	}
	now := map[string]uint64{"panicked": s.Panicked, "failed": s.Ended[limit.Failed] - s.Panicked, "completed": s.Completed}
	for _, o := range []limit.Outcome{limit.Deadline, limit.Canceled, limit.Overload} {
		now[outcomes[o]] = s.Ended[o]
	}
	for _, result := range jobResults { // completed has what is left
		n := min(now[result]-min(now[result], p.last[result]), left)
		p.last[result] += n
		left -= n
	}
	return s, maps.Clone(p.last)
}
