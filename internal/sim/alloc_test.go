//go:build !race

package sim_test

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/sim"
)

// TestACallToAFleetAllocatesNothing checks the same for a hundred replicas. Some of them are
// restarted in the part of the run that both durations have.
func TestACallToAFleetAllocatesNothing(t *testing.T) {
	for _, balancer := range []sim.Balancer{sim.RoundRobin, sim.LeastLoaded, sim.PowerOfTwo} {
		s := service(sim.Degrading(20, 0.5), 1)
		s.Fleet = sim.Fleet{Replicas: 20, Balancer: balancer, Drain: sec, Boot: sec, Warm: sec, SlowStart: sec, Cold: 0.5}
		s.Changes = []sim.Change{{At: 2 * sec, Count: 4, Restart: 2}}
		s.Retry = sim.Retry{Attempts: 2, Backoff: 50 * ms, Budget: 0.1, Clients: 1000}
		s.Arrivals = sim.Poisson(1.1 * s.Capacity())
		allocations := func(d time.Duration) float64 {
			s.Duration = d
			return testing.AllocsPerRun(1, func() {
				run(t, s)
			})
		}
		short, long := allocations(15*sec), allocations(35*sec)
		if calls := 1.1 * s.Capacity() * 20; (long-short)/calls > 0.005 {
			t.Errorf("%v: %v allocations in 15 s, %v in 35 s: %.4f a call", balancer, short, long, (long-short)/calls)
		}
	}
}

// TestACallAllocatesNothing: the allocations of a run do not grow with the number of calls, except
// while queues and histograms grow to their final size.
func TestACallAllocatesNothing(t *testing.T) {
	const load = 1.2 // with more, the number of waiting retries keeps growing, up to half a minute's worth
	for name, b := range map[string]sim.Backend{"nway": sim.NWay(20), "degrading": sim.Degrading(20, 0.5), "database": sim.Database(30, 20)} {
		s := service(b, load)
		s.Retry = sim.Retry{Attempts: 2, Backoff: 50 * ms, Respect: true}
		allocations := func(d time.Duration) float64 {
			s.Duration = d
			return testing.AllocsPerRun(1, func() {
				run(t, s)
			})
		}
		short, long := allocations(30*sec), allocations(5*time.Minute)
		if calls := load * s.Capacity() * 270; (long-short)/calls > 0.005 {
			t.Errorf("%s: %v allocations in half a minute, %v in five: %.4f a call", name, short, long, (long-short)/calls)
		}
	}
}
