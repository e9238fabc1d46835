package metricsprom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/limiter"
)

// limiterDescs describe the metrics of a limiter or a family. The label key is
// empty but for members of a family.
type limiterDescs struct {
	requests, queued, active, slots, demand, inQueue, duration *prometheus.Desc
	mode, would, leaked, overdue, oldest                       *prometheus.Desc
}

func describeLimiter(name string) *limiterDescs {
	d := func(metric, help string, labels ...string) *prometheus.Desc {
		return desc("limiter", name, metric, help, append([]string{"key"}, labels...)...)
	}
	return &limiterDescs{
		requests: d("requests_total", "Requests decided, by result: admitted, cancelled, or the reason of a rejection. Offered requests are their sum, and those queued.", "result"),
		queued:   d("queued_requests", "Requests that wait to be admitted."),
		active:   d("active_requests", "Slots in use."),
		slots:    d("limit", "Slots that may be in use at one time."),
		demand:   d("demand", "Work offered in the last seconds over what the limit allows; above 1, more comes than can be served. Scale by this: shedding keeps the processors calm."),
		inQueue:  d("request_time_in_queue_seconds", "How long admitted requests waited."),
		duration: d("request_duration_seconds", "How long finished requests took, without the wait."),
		mode:     d("mode", "Limiters by mode: 1 at the mode of a limiter, 0 at the others.", "mode"),
		would:    d("would_reject_total", "Admitted requests that a dry run would have refused."),
		leaked:   d("leaked_permits_total", "Permits that were reported as never ended (limiter.Config.LeakAfter); some may have ended late."),
		overdue:  d("overdue_permits", "Permits that have not ended and are older than limiter.Config.LeakAfter."),
		oldest:   d("oldest_active_request_seconds", "How long the oldest work in flight has run; 0 when none is."),
	}
}

func (d *limiterDescs) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{d.requests, d.queued, d.active, d.slots, d.demand, d.inQueue, d.duration,
		d.mode, d.would, d.leaked, d.overdue, d.oldest} {
		ch <- d
	}
}

var (
	modes          = []limiter.Mode{limiter.Enforce, limiter.DryRun, limiter.Off}
	limiterResults = results("admitted", "cancelled")
)

// picture is what is shown of one limiter, or of several as if they were one.
type picture struct {
	// counted is requests by result, would, leaked, time in queue, duration.
	counted row

	queued, active, slots, overdue int
	work                           float64 // offered, in slots
	oldest                         time.Duration
	modes                          map[limiter.Mode]int
}

func pictureOf(s limiter.Stats) picture {
	counted := row{float64(s.Admitted), float64(s.Cancelled)}.rejections(s.RejectedBy)
	counted = append(counted, float64(s.WouldReject), float64(s.Leaked)).times(s.QueueWait).times(s.Service)
	return picture{
		counted: counted,
		queued:  s.Queued, active: s.InFlight, slots: s.Limit, overdue: len(s.Leaks),
		work: s.Demand * float64(s.Limit), oldest: s.OldestInFlight, modes: map[limiter.Mode]int{s.Mode: 1},
	}
}

// join adds all of q that is not counted.
func (p *picture) join(q picture) {
	p.queued += q.queued
	p.active += q.active
	p.slots += q.slots
	p.overdue += q.overdue
	p.work += q.work
	p.oldest = max(p.oldest, q.oldest)
	for mode, n := range q.modes {
		p.modes[mode] += n
	}
}

// show sends a picture.
func (d *limiterDescs) show(ch chan<- prometheus.Metric, key string, p picture) {
	for i, result := range limiterResults {
		counter(ch, d.requests, p.counted[i], key, result)
	}
	rest := p.counted[len(limiterResults):]
	counter(ch, d.would, rest[0], key)
	counter(ch, d.leaked, rest[1], key)
	seconds(ch, d.inQueue, rest[2:], key)
	seconds(ch, d.duration, rest[2+sizeOfTimes:], key)

	gauge(ch, d.queued, float64(p.queued), key)
	gauge(ch, d.active, float64(p.active), key)
	gauge(ch, d.slots, float64(p.slots), key)
	gauge(ch, d.overdue, float64(p.overdue), key)
	gauge(ch, d.oldest, p.oldest.Seconds(), key)
	demand := 0.0
	if p.slots > 0 {
		demand = p.work / float64(p.slots)
	}
	gauge(ch, d.demand, demand, key)
	for _, mode := range modes {
		gauge(ch, d.mode, float64(p.modes[mode]), key, mode.String())
	}
}

type limiters struct {
	of    []*limiter.Limiter
	descs []*limiterDescs
}

// NewLimiter returns a collector over limiters. Their names, and those of other
// limiters and families in the same registry, must differ: otherwise registering
// it is an error.
func NewLimiter(lims ...*limiter.Limiter) prometheus.Collector {
	names := make([]string, len(lims))
	for i, l := range lims {
		names[i] = l.Stats().Name
	}
	names, err := unique("limiter", names)
	if err != nil {
		return refused{err}
	}
	ls := &limiters{of: lims}
	for _, name := range names {
		ls.descs = append(ls.descs, describeLimiter(name))
	}
	return ls
}

func (ls *limiters) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range ls.descs {
		d.describe(ch)
	}
}

func (ls *limiters) Collect(ch chan<- prometheus.Metric) {
	for i, l := range ls.of {
		ls.descs[i].show(ch, "", pictureOf(l.Stats()))
	}
}
