package sim_test

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/sim"
)

// BenchmarkRun reports simulated calls per second of one core.
func BenchmarkRun(b *testing.B) {
	adaptive := sim.Limiter(limit.NewAdaptive, sim.Settings{})
	known := sim.Limiter(func() limit.Law { return limit.NewFixed(20) }, sim.Settings{})
	for _, c := range []struct {
		name    string
		load    float64
		backend sim.Backend
		policy  sim.Policy
	}{
		{"adaptive/nway/0.9x", 0.9, sim.NWay(20), adaptive},
		{"adaptive/nway/2x", 2, sim.NWay(20), adaptive},
		{"adaptive/degrading/2x", 2, sim.Degrading(20, 0.5), adaptive},
		{"adaptive/database/1.5x", 1.5, sim.Database(40, 20), adaptive},
		{"fixed/nway/2x", 2, sim.NWay(20), known},
		{"unlimited/nway/2x", 2, sim.NWay(20), sim.Unlimited()},
	} {
		b.Run(c.name, func(b *testing.B) {
			work := sim.Uniform(50*ms, 100*ms)
			s := sim.Scenario{
				Duration: 4 * time.Minute,
				Classes: []sim.Class{
					{Share: 0.2, Deadline: sec, Service: work, Priority: spillway.Critical},
					{Share: 0.8, Deadline: sec, Service: work, Priority: spillway.Low},
				},
				Backend: c.backend,
				Policy:  c.policy,
			}
			s.Arrivals = sim.Poisson(c.load * s.Capacity())
			b.ReportAllocs()
			var calls uint64
			for b.Loop() {
				s.Seed++
				r, err := sim.Run(s)
				if err != nil {
					b.Fatal(err)
				}
				calls += r.Total.Offered
			}
			b.ReportMetric(float64(calls)/b.Elapsed().Seconds(), "req/s")
		})
	}
}
