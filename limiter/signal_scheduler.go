package limiter

import (
	"runtime"
	"runtime/metrics"
	"slices"
	"time"
)

const defaultSchedulerWait = 20 * time.Millisecond

// scheduler watches how long runnable goroutines wait for a processor.
type scheduler struct {
	owned
	most     float64 // seconds
	read     func() (latencies *metrics.Float64Histogram, runnable int)
	previous []uint64
}

// Scheduler returns a signal that presses when two conditions hold. Since the last
// check, one goroutine in a hundred waited for a processor longer than most. And more
// goroutines are runnable now than there are processors. A most of zero means 20 ms. When
// the signal presses, processors are scarce, and more concurrency only slows down all work.
func Scheduler(most time.Duration) Signal {
	if most <= 0 {
		most = defaultSchedulerWait
	}
	samples := []metrics.Sample{{Name: "/sched/latencies:seconds"}, {Name: "/sched/goroutines/runnable:goroutines"}}
	return &scheduler{most: most.Seconds(), read: func() (*metrics.Float64Histogram, int) {
		metrics.Read(samples)
		var h *metrics.Float64Histogram
		if samples[0].Value.Kind() == metrics.KindFloat64Histogram {
			h = samples[0].Value.Float64Histogram()
		}
		runnable := runtime.GOMAXPROCS(0) + 1 // if unknown, the latencies alone decide
		if samples[1].Value.Kind() == metrics.KindUint64 {
			runnable = int(samples[1].Value.Uint64())
		}
		return h, runnable
	}}
}

// Name returns "scheduler".
func (s *scheduler) Name() string { return "scheduler" }

// Level returns the 99th percentile of the waits divided by the longest acceptable wait.
func (s *scheduler) Level() float64 {
	h, runnable := s.read()
	if h == nil {
		return 0
	}
	first := s.previous == nil // the first counts go back to the start of the process
	fresh := slices.Clone(h.Counts)
	var total uint64
	for i := range fresh {
		if i < len(s.previous) {
			fresh[i] -= s.previous[i]
		}
		total += fresh[i]
	}
	s.previous = append(s.previous[:0], h.Counts...)
	if first || total == 0 || runnable <= runtime.GOMAXPROCS(0) {
		return 0
	}
	var seen uint64
	for i, n := range fresh {
		if seen += n; seen*100 >= total*99 {
			return max(h.Buckets[i], 0) / s.most // lower bound of the bucket
		}
	}
	return 0
}
