package metricsprom

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/workerpool"
)

type poolDescs struct {
	workers, jobs, queued, limit, demand, inQueue, duration *prometheus.Desc
}

func describePool(name string) poolDescs {
	d := func(metric, help string, labels ...string) *prometheus.Desc {
		return desc("pool", name, "pool_"+metric, help, labels...)
	}
	return poolDescs{
		workers:  d("workers", "Worker goroutines, by state.", "state"),
		jobs:     d("jobs_total", "Jobs decided, by result: completed, failed, panicked, cancelled, dropped, or the reason of a rejection. Submitted jobs are their sum, and those queued or running.", "result"),
		queued:   d("queued_jobs", "Jobs that wait for a worker, or for room in the queue."),
		limit:    d("limit", "Jobs that may run at one time."),
		demand:   d("demand", "Work submitted lately over what the limit allows; above 1, more comes than can be done. Scale by this."),
		inQueue:  d("job_time_in_queue_seconds", "How long started jobs waited."),
		duration: d("job_duration_seconds", "How long jobs that returned took, without the wait."),
	}
}

var jobResults = results("cancelled", "dropped")

// shownPool is a pool and how it is shown.
type shownPool struct {
	*workerpool.Pool
	poolDescs

	mu                sync.Mutex
	completed, failed uint64 // as shown last
}

type pools []*shownPool

// NewPool returns a collector over worker pools. Their names, and those of other
// pools in the same registry, must differ: otherwise registering it is an error.
func NewPool(ps ...*workerpool.Pool) prometheus.Collector {
	names := make([]string, len(ps))
	for i, p := range ps {
		names[i] = p.Stats().Name
	}
	names, err := unique("pool", names)
	if err != nil {
		return refused{err}
	}
	all := make(pools, len(ps))
	for i, p := range ps {
		all[i] = &shownPool{Pool: p, poolDescs: describePool(names[i])}
	}
	return all
}

func (ps pools) Describe(ch chan<- *prometheus.Desc) {
	for _, p := range ps {
		for _, d := range []*prometheus.Desc{p.workers, p.jobs, p.queued, p.limit, p.demand, p.inQueue, p.duration} {
			ch <- d
		}
	}
}

func (ps pools) Collect(ch chan<- prometheus.Metric) {
	for _, p := range ps {
		p.collect(ch)
	}
}

func (p *shownPool) collect(ch chan<- prometheus.Metric) {
	s, completed, failed := p.ended()
	gauge(ch, p.workers, float64(s.Idle), "idle")
	gauge(ch, p.workers, float64(s.Workers-s.Idle), "busy")
	counter(ch, p.jobs, float64(completed), "completed")
	counter(ch, p.jobs, float64(failed), "failed")
	counter(ch, p.jobs, float64(s.Completed-completed-failed), "panicked")
	for i, n := range (row{float64(s.Cancelled), float64(s.Dropped)}).rejections(s.RejectedBy) {
		counter(ch, p.jobs, n, jobResults[i])
	}
	gauge(ch, p.queued, float64(s.Queued+s.Blocked))
	gauge(ch, p.limit, float64(s.Limit))
	gauge(ch, p.demand, s.Demand)
	seconds(ch, p.inQueue, row(nil).times(s.QueueWait))
	seconds(ch, p.duration, row(nil).times(s.Service))
}

// ended returns the Stats, and how many of the completed jobs succeeded and
// failed without a panic. A job's failure may be counted a moment before its end
// is, and would be taken from those that succeeded; but a counter that falls, if
// only by one, counts from zero again. Such a failure is shown by the next scrape.
func (p *shownPool) ended() (s workerpool.Stats, completed, failed uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s = p.Stats()
	p.completed = max(p.completed, s.Completed-s.Failed)
	broken := s.Completed - p.completed
	p.failed = max(p.failed, broken-min(s.Panicked, broken))
	return s, p.completed, p.failed
}
