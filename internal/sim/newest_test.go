package sim_test

import (
	"fmt"
	"testing"

	"github.com/spillway-go/spillway/internal/sim"
	"github.com/spillway-go/spillway/limit"
)

// If the backend serves the newest call first, most calls see no queue, however long the queue is.
// To a law that only looks at latency, every limit looks right, and the other calls wait for very
// long.
func TestAQueueThatMostCallsDoNotSeeIsFound(t *testing.T) {
	for _, slots := range sim.Few(20, 6, 2) {
		for _, load := range []float64{1.2, 3} {
			t.Run(fmt.Sprintf("%d slots at %v", slots, load), func(t *testing.T) {
				t.Parallel()
				s := service(sim.NewestFirst(slots), 1)
				s.Duration, s.Warmup = 30*sec, 10*sec
				s.Classes = mix(sec, sim.Uniform(6*ms, 11*ms))
				s.Arrivals = sim.Poisson(load * s.Capacity())
				s.Policy = sim.Limiter(limit.NewAdaptive, sim.Settings{})
				r := run(t, s)
				s.Policy = sim.Oracle()
				best := run(t, s)
				sum, n := 0, 0
				for _, p := range r.Timeline {
					if p.At >= s.Warmup {
						sum, n = sum+p.InBackend, n+1
					}
				}
				share, mean := r.Total.Goodput/best.Total.Goodput, float64(sum)/float64(n)
				// The law may detect the queue only when callers leave. Fewer calls in the backend
				// would be better, but the law does not find that limit while the goodput is the
				// same.
				if share < .8 || mean > max(50, 40*float64(slots)) {
					t.Errorf("goodput %.3f of the best, %.1f calls in the backend", share, mean)
				}
			})
		}
	}
}
