// Package metricsprom shows limiters and worker pools to Prometheus.
//
//	registry.MustRegister(metricsprom.NewLimiter(lim), metricsprom.NewPool(pool))
//
// A collector asks for Stats when it is scraped and does nothing in between: the
// work that is measured pays nothing. Labels are bounded: the configured name,
// and words of a fixed list.
package metricsprom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/workerpool"
)

// Bounds are the upper bounds of all histogram buckets, in seconds: from what a
// free slot costs to what no caller waits for.
func Bounds() []float64 {
	return []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 10}
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("spillway_"+name, help, labels, nil)
}

var (
	requests = desc("requests_total", "Requests decided, by result: admitted, cancelled, or the reason of a rejection. Offered requests are their sum, and those queued.", "limiter", "result")
	queued   = desc("queued_requests", "Requests that wait to be admitted.", "limiter")
	active   = desc("active_requests", "Slots in use.", "limiter")
	slots    = desc("limit", "Slots that may be in use at one time.", "limiter")
	demand   = desc("demand", "Work offered in the last seconds over what the limit allows; above 1, more comes than can be served. Scale by this: shedding keeps the processors calm.", "limiter")
	inQueue  = desc("request_time_in_queue_seconds", "How long admitted requests waited.", "limiter")
	duration = desc("request_duration_seconds", "How long finished requests took, without the wait.", "limiter")

	poolWorkers  = desc("pool_workers", "Worker goroutines, by state.", "pool", "state")
	poolJobs     = desc("pool_jobs_total", "Jobs decided, by result: completed, failed, panicked, cancelled, dropped, or the reason of a rejection. Submitted jobs are their sum, and those queued or running.", "pool", "result")
	poolQueued   = desc("pool_queued_jobs", "Jobs that wait for a worker, or for room in the queue.", "pool")
	poolInQueue  = desc("pool_job_time_in_queue_seconds", "How long started jobs waited.", "pool")
	poolDuration = desc("pool_job_duration_seconds", "How long jobs that returned took, without the wait.", "pool")
)

type limiters []*limiter.Limiter

// NewLimiter returns a collector over limiters. Their names must differ.
func NewLimiter(lims ...*limiter.Limiter) prometheus.Collector { return limiters(lims) }

func (limiters) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requests, queued, active, slots, demand, inQueue, duration} {
		ch <- d
	}
}

func (ls limiters) Collect(ch chan<- prometheus.Metric) {
	for _, l := range ls {
		show(ch, l.Stats())
	}
}

type families []*limiter.Keyed

// NewKeyed returns a collector over families of limiters, one series of each
// metric for each limiter there is. What is forgotten to make room for other keys
// takes its counts along.
func NewKeyed(fs ...*limiter.Keyed) prometheus.Collector { return families(fs) }

func (families) Describe(ch chan<- *prometheus.Desc) { limiters(nil).Describe(ch) }

func (fs families) Collect(ch chan<- prometheus.Metric) {
	for _, f := range fs {
		for _, s := range f.All() {
			show(ch, s)
		}
	}
}

func show(ch chan<- prometheus.Metric, s limiter.Stats) {
	counter(ch, requests, s.Admitted, s.Name, "admitted")
	counter(ch, requests, s.Cancelled, s.Name, "cancelled")
	rejections(ch, requests, s.RejectedBy, s.Name)
	gauge(ch, queued, float64(s.Queued), s.Name)
	gauge(ch, active, float64(s.InFlight), s.Name)
	gauge(ch, slots, float64(s.Limit), s.Name)
	gauge(ch, demand, s.Demand, s.Name)
	seconds(ch, inQueue, s.QueueWait, s.Name)
	seconds(ch, duration, s.Service, s.Name)
}

type pools []*workerpool.Pool

// NewPool returns a collector over worker pools. Their names must differ.
func NewPool(ps ...*workerpool.Pool) prometheus.Collector { return pools(ps) }

func (pools) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{poolWorkers, poolJobs, poolQueued, poolInQueue, poolDuration} {
		ch <- d
	}
}

func (ps pools) Collect(ch chan<- prometheus.Metric) {
	for _, p := range ps {
		s := p.Stats()
		gauge(ch, poolWorkers, float64(s.Idle), s.Name, "idle")
		gauge(ch, poolWorkers, float64(s.Workers-s.Idle), s.Name, "busy")
		counter(ch, poolJobs, s.Completed-s.Failed, s.Name, "completed")
		counter(ch, poolJobs, s.Failed-s.Panicked, s.Name, "failed")
		counter(ch, poolJobs, s.Panicked, s.Name, "panicked")
		counter(ch, poolJobs, s.Cancelled, s.Name, "cancelled")
		counter(ch, poolJobs, s.Dropped, s.Name, "dropped")
		rejections(ch, poolJobs, s.RejectedBy, s.Name)
		gauge(ch, poolQueued, float64(s.Queued+s.Blocked), s.Name)
		seconds(ch, poolInQueue, s.QueueWait, s.Name)
		seconds(ch, poolDuration, s.RunTime, s.Name)
	}
}

func counter(ch chan<- prometheus.Metric, d *prometheus.Desc, n uint64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// rejections shows every reason, also those that never occurred: a rate over a
// series that appears with its first event misses that event.
func rejections(ch chan<- prometheus.Metric, d *prometheus.Desc, by map[spillway.Reason]uint64, name string) {
	for _, r := range spillway.Reasons() {
		counter(ch, d, by[r], name, r.String())
	}
}

func seconds(ch chan<- prometheus.Metric, d *prometheus.Desc, h *histogram.Histogram, name string) {
	bounds := Bounds()
	buckets := make(map[float64]uint64, len(bounds))
	for _, b := range bounds {
		buckets[b] = h.CountAtMost(int64(b * float64(time.Second)))
	}
	ch <- prometheus.MustNewConstHistogram(d, h.Count(), h.Sum()/float64(time.Second), buckets, name)
}
