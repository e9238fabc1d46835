// Package sim answers "what would this policy do to my service?" in a second instead of a day: it
// simulates callers, a limiter and a backend in virtual time, at more than a hundred thousand calls
// per second of one core.
//
//	s := sim.Scenario{
//		Seed:     1,
//		Duration: time.Minute,
//		Warmup:   10 * time.Second,
//		Classes: []sim.Class{
//			{Name: "read", Share: 0.9, Deadline: time.Second, Service: sim.Exponential(20 * time.Millisecond)},
//			{Name: "order", Share: 0.1, Deadline: time.Second, Service: sim.Exponential(60 * time.Millisecond), Priority: spillway.Critical},
//		},
//		Backend: sim.Database(32, 8),
//		Policy:  sim.Limiter(limit.NewAdaptive, sim.Settings{}),
//	}
//	s.Arrivals = sim.Poisson(1.5 * s.Capacity())
//	report, err := sim.Run(s)
//
// The decisions are made by the code of the live limiter: the same control law and the same gate,
// which have no clock of their own. The rest is a model: how calls arrive, how much work they are,
// when callers leave and retry, and how the backend slows down. Compare a policy with [Oracle] and
// [OracleNewestFirst], which know the backend. [Fleet] puts replicas behind a balancer, and a [Change] may stop, start
// or restart some; docs/operate/capacity.md plans a fleet in this way.
//
// # Cost
//
// A call allocates nothing (go test ./internal/sim -run Allocates). A benchmark measures how many calls
// of a fleet a processor simulates per second (go test ./internal/sim -run - -bench Fleet).
//
// # Pitfalls
//
//   - Measure the service times of the real backend, and give them to [Measured].
//   - Arrivals do not depend on answers unless Retry and LeaveAfter are set.
//   - Without Class.Kind, the limiter tells calls apart by priority and deadline only, as it does
//     in a service without routes.
//   - A seed fixes everything that is random: run several seeds.
//
// # When not to use it
//
// A simulation does not prove that the real service withstands a load: send it that load.
package sim
