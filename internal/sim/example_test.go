package sim_test

import (
	"fmt"
	"math"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/sim"
	"github.com/spillway-go/spillway/limit"
)

// Would the limiter help this shop? Its database has 32 connections and 8 cores; browsing takes 20
// ms and orders take 60 ms. One evening the load is twice what the database can serve, and callers
// that are refused or time out retry.
func Example() {
	shop := sim.Scenario{
		Seed:     1,
		Duration: time.Minute,
		Warmup:   10 * time.Second,
		Classes: []sim.Class{
			{Name: "browse", Share: 0.9, Deadline: time.Second, Service: sim.Exponential(20 * time.Millisecond), Priority: spillway.Low},
			{Name: "order", Share: 0.1, Deadline: time.Second, Service: sim.LogNormal(60*time.Millisecond, 0.5), Priority: spillway.Critical},
		},
		Backend: sim.Database(32, 8),
		Retry:   sim.Retry{Attempts: 3, Backoff: 200 * time.Millisecond, Respect: true},
	}
	shop.Arrivals = sim.Poisson(2 * shop.Capacity())

	for _, p := range []struct {
		name   string
		policy sim.Policy
	}{
		{"unlimited", sim.Unlimited()},
		{"semaphore", sim.Semaphore(32)},
		{"limiter", sim.Limiter(limit.NewAdaptive, sim.Settings{})},
	} {
		shop.Policy = p.policy
		report, err := sim.Run(shop)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%-9s  serves about %3.0f %% of browsing and %3.0f %% of orders\n", p.name,
			10*math.Round(10*report.Class("browse").Served()), 10*math.Round(10*report.Class("order").Served()))
	}
	// Output:
	// unlimited  serves about  60 % of browsing and   0 % of orders
	// semaphore  serves about  60 % of browsing and   0 % of orders
	// limiter    serves about  30 % of browsing and 100 % of orders
}

// An access log says when calls arrived and how long they took in a quiet hour.
// What if the same calls arrived in half the time?
func ExampleReplay() {
	var log []sim.Request // from a real log; here a call every 5 ms, every tenth of them slow
	for i := range 12_000 {
		log = append(log, sim.Request{At: time.Duration(i) * 5 * time.Millisecond, Work: 20 * time.Millisecond})
		if i%10 == 0 {
			log[i].Work = 150 * time.Millisecond
		}
	}
	for i := range log {
		log[i].At /= 2
	}
	service := sim.Scenario{
		Duration: 30 * time.Second,
		Warmup:   5 * time.Second,
		Arrivals: sim.Replay(log),
		Classes:  []sim.Class{{Deadline: time.Second, Service: sim.Exponential(33 * time.Millisecond)}}, // not in the log
		Backend:  sim.NWay(8),
	}
	for _, policy := range []sim.Policy{sim.Unlimited(), {}} { // without a limiter, and limiter.Config{}
		service.Policy = policy
		report, err := sim.Run(service)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%.1f of the calls are answered in time\n", report.Total.Served())
	}
	fmt.Printf("%.1f of the work fits\n", service.Capacity()/400)
	// Output:
	// 0.0 of the calls are answered in time
	// 0.6 of the calls are answered in time
	// 0.6 of the work fits
}

// Thirty replicas in three zones have twice the needed capacity. One zone crashes, the balancer
// notices after a second, and callers retry meanwhile. The other twenty replicas could do the work.
// Do they?
func ExampleFleet() {
	service := sim.Scenario{
		Seed:     1,
		Duration: 30 * time.Second,
		Classes:  []sim.Class{{Deadline: time.Second, Service: sim.Uniform(20*time.Millisecond, 60*time.Millisecond)}},
		Backend:  sim.Degrading(5, 0.5), // of each replica
		Fleet:    sim.Fleet{Replicas: 30, Zones: 3, Balancer: sim.PowerOfTwo, Notice: time.Second},
		Retry:    sim.Retry{Attempts: 3, Backoff: 100 * time.Millisecond},
		Changes:  []sim.Change{{At: 10 * time.Second, Zone: 1, Stop: true}},
	}
	service.Arrivals = sim.Poisson(0.5 * service.Capacity())
	for _, policy := range []sim.Policy{sim.Unlimited(), {}} { // without a limiter, and limiter.Config{}
		service.Policy = policy
		report, err := sim.Run(service)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%.1f of the callers are answered after that\n", report.Answered(15*time.Second, 30*time.Second))
	}
	// Output:
	// 0.0 of the callers are answered after that
	// 1.0 of the callers are answered after that
}

// A custom law is simulated in the same way; here it is a fixed limit.
func ExampleLimiter() {
	service := sim.Scenario{
		Seed:     1,
		Duration: 30 * time.Second,
		Warmup:   5 * time.Second,
		Classes:  []sim.Class{{Deadline: time.Second, Service: sim.Exponential(50 * time.Millisecond)}},
		Backend:  sim.Degrading(40, 0.5),
	}
	service.Arrivals = sim.Poisson(1.5 * service.Capacity())
	for _, n := range []int{10, 40, 160} {
		service.Policy = sim.Limiter(func() limit.Law { return limit.NewFixed(n) }, sim.Settings{})
		report, err := sim.Run(service)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("limit %3d: %3.0f %% of the capacity\n", n, 100*report.Total.Goodput/service.Capacity())
	}
	// Output:
	// limit  10:  25 % of the capacity
	// limit  40: 100 % of the capacity
	// limit 160:  50 % of the capacity
}

// At most a tenth may be refused, although the load is three times the capacity of ten slots. The
// limiter admits the rest over the limit. This suits a limiter's first weeks in production.
func ExampleSettings() {
	s := sim.Scenario{
		Duration: 30 * time.Second,
		Warmup:   10 * time.Second,
		Classes:  []sim.Class{{Service: sim.Exponential(20 * time.Millisecond)}},
		Arrivals: sim.Poisson(1500),
		Backend:  sim.NWay(100),
	}
	for _, most := range []float64{0, 0.1} {
		s.Policy = sim.Limiter(func() limit.Law { return limit.NewFixed(10) }, sim.Settings{MaxRefused: most})
		r, err := sim.Run(s)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("refused: %.0f %%\n", 100*float64(r.Total.Refused)/float64(r.Total.Offered))
	}
	// Output:
	// refused: 66 %
	// refused: 10 %
}
