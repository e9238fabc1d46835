//go:build unix

package sim_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/sim"
	"github.com/spillway-go/spillway/limit"
)

// thousand is a thousand replicas that are offered a million calls a second, which is load times
// their capacity.
func thousand(load float64, balancer sim.Balancer, policy sim.Policy, backend func(slots int) sim.Backend) sim.Scenario {
	work := sim.Exponential(20 * ms)
	s := sim.Scenario{
		Seed: 1, Duration: 2 * sec,
		Classes: []sim.Class{{Deadline: sec, Service: work}},
		Policy:  policy,
		Backend: backend(int(20/load + 0.5)),
		Fleet:   sim.Fleet{Replicas: 1000, Zones: 3, Balancer: balancer},
		Retry:   sim.Retry{Attempts: 3, Backoff: 100 * ms, Budget: 0.1, Clients: 10_000},
		Record:  sim.Record{Interval: 100 * ms},
	}
	s.Arrivals = sim.Poisson(1e6)
	return s
}

// cpu returns the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkFleet reports simulated attempts per second of processor time, retries
// included.
func BenchmarkFleet(b *testing.B) {
	adaptive := sim.Limiter(limit.NewAdaptive, sim.Settings{})
	nway := sim.NWay
	thrashing := func(n int) sim.Backend { return sim.Degrading(n, 0.5) }
	for _, c := range []struct {
		name string
		s    sim.Scenario
	}{
		{"adaptive/nway/0.7x/p2c", thousand(0.7, sim.PowerOfTwo, adaptive, nway)},
		{"adaptive/degrading/0.7x/p2c", thousand(0.7, sim.PowerOfTwo, adaptive, thrashing)},
		{"adaptive/degrading/0.7x/least", thousand(0.7, sim.LeastLoaded, adaptive, thrashing)},
		{"adaptive/degrading/2x/rr", thousand(2, sim.RoundRobin, adaptive, thrashing)},
		{"unlimited/degrading/0.7x/p2c", thousand(0.7, sim.PowerOfTwo, sim.Unlimited(), thrashing)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var calls uint64
			start := cpu(b)
			for b.Loop() {
				r, err := sim.Run(c.s)
				if err != nil {
					b.Fatal(err)
				}
				calls += r.Total.Offered
			}
			b.ReportMetric(float64(calls)/(cpu(b)-start).Seconds(), "req/cpu-s")
		})
	}
}
