//go:build !race

package sim_test

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/sim"
)

// TestACallAllocatesNothing: what a run allocates does not grow with the calls,
// apart from queues and histograms that reach their size.
func TestACallAllocatesNothing(t *testing.T) {
	const load = 1.2 // with more, the number of waiting retries keeps growing, up to half a minute's worth
	for name, b := range map[string]sim.Backend{"nway": sim.NWay(20), "degrading": sim.Degrading(20, 0.5), "database": sim.Database(30, 20)} {
		s := service(b, load)
		s.Retry = sim.Retry{Attempts: 2, Backoff: 50 * ms, Respect: true}
		allocations := func(d time.Duration) float64 {
			s.Duration = d
			return testing.AllocsPerRun(1, func() {
				if _, err := sim.Run(s); err != nil {
					t.Fatal(err)
				}
			})
		}
		short, long := allocations(30*sec), allocations(5*time.Minute)
		if calls := load * s.Capacity() * 270; (long-short)/calls > 0.005 {
			t.Errorf("%s: %v allocations in half a minute, %v in five: %.4f a call", name, short, long, (long-short)/calls)
		}
	}
}
