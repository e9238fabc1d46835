package metrics

import (
	"sync"

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
	jobs:        {"spillway.pool.jobs", Counter, "{job}", "Jobs decided, by result: completed, failed, panicked, cancelled, dropped, or the reason of a rejection. Submitted jobs are their sum, and those queued or running.", []string{"result"}},
	queuedJobs:  {"spillway.pool.queued_jobs", UpDownCounter, "{job}", "Jobs that wait for a worker, or for room in the queue.", nil},
	poolLimit:   {"spillway.pool.limit", UpDownCounter, "{job}", "Jobs that may run at one time.", nil},
	poolDemand:  {"spillway.pool.demand", Gauge, "", "Work submitted lately over what the limit allows; above 1, more comes than can be done. Scale by this.", nil},
	jobInQueue:  {"spillway.pool.job.time_in_queue", Histogram, "s", "How long started jobs waited.", nil},
	jobDuration: {"spillway.pool.job.duration", Histogram, "s", "How long jobs that returned took, without the wait.", nil},
}

// shownPool is a pool and the values of its last read.
type shownPool struct {
	*workerpool.Pool

	mu                sync.Mutex
	completed, failed uint64
}

// Pool returns a worker pool as metrics.
func Pool(p *workerpool.Pool) *Source {
	shown := &shownPool{Pool: p}
	return &Source{kind: "pool", name: Clean(p.Stats().Name), metrics: poolMetrics, read: shown.read}
}

func (p *shownPool) read() []Sample {
	s, completed, failed := p.ended()
	all := gather(24)
	all.put(workers, float64(s.Idle), "idle")
	all.put(workers, float64(s.Workers-s.Idle), "busy")
	all.put(jobs, float64(completed), "completed")
	all.put(jobs, float64(failed), "failed")
	all.put(jobs, float64(s.Completed-completed-failed), "panicked")
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

// ended returns the Stats, and how many of the completed jobs succeeded and failed without a panic.
// The pool may count a job's failure a moment before its end. Completed less Failed is then too low
// by one. ended returns the last value instead, because Prometheus takes a counter that falls for a
// restart. The next read shows such a failure.
func (p *shownPool) ended() (s workerpool.Stats, completed, failed uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s = p.Stats()
	p.completed = max(p.completed, s.Completed-s.Failed)
	broken := s.Completed - p.completed
	p.failed = max(p.failed, broken-min(s.Panicked, broken))
	return s, p.completed, p.failed
}
