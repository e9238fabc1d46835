// Package fleet is the experiment that asks whether the simulator is right about fleets: a
// storm of retries over a few real processes, and the same in virtual time.
package fleet

import (
	"cmp"
	"context"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/sim"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, Config.plan, map[string]contestant.Role{roleReplica: contestant.Server(serve)})

const help = `A fleet of processes on this machine, each with a small HTTP service and a database of its own, behind a balancer that takes the better of two random replicas. Half of the capacity is asked of it. For some seconds all databases are five times slower, and then as before. Clients wait a second for an answer and try three times.

The unprotected fleet is net/http with handlers that heed their request's context. The protected one has admissionhttp with limiter.Config{} in every process, and its clients have a retry budget.

The simulator is given the same: replicas, balancer, backends, clients. How many of the clients are answered well during the trouble and after it, in the processes and in virtual time?

spillway sim fleet-storm is the same with a thousand replicas.`

const (
	roleReplica = "fleet-replica"

	unprotected = "unprotected"
	protected   = "protected"

	slower   = 5               // times, that a database is in the trouble
	load     = .5              // times the capacity
	settling = 5 * time.Second // after the trouble, until the protected fleet has to be back
	patience = time.Second
	tries    = 3
	backoff  = 100 * time.Millisecond // at most, before the second try; twice that before the third
	clients  = 200                    // that send in turn
	ratio    = .1                     // retries that a success pays for
)

// Config is what a user may set.
type Config struct {
	Replicas int           `group:"Size" default:"4" least:"2" most:"16" help:"Processes of the fleet."`
	WarmUp   time.Duration `group:"Size" default:"4s" quick:"2s" above:"0s" help:"How long all is well."`
	Trouble  time.Duration `group:"Size" default:"15s" quick:"2s" above:"0s" help:"How long the databases are slow."`
	After    time.Duration `group:"Size" default:"15s" quick:"6s" full:"30s" above:"0s" help:"How long it goes on after that."`
	service.Flags
}

// job is the input of a replica.
type job struct {
	Protected bool
	Config
	Seed uint64
}

func key(pattern string) ledger.Key {
	return ledger.Key{Setup: "storm", Load: "0.5x", Pattern: pattern}
}

func (c Config) length() time.Duration { return c.WarmUp + c.Trouble + c.After }

func (c Config) plan() (p experiment.Plan, err error) {
	for _, pattern := range []string{unprotected, protected} {
		k := key(pattern)
		p.Cells = append(p.Cells, experiment.Cell{
			Setup: k.Setup, Load: k.Load, Pattern: pattern, Expect: c.length() + 5*time.Second,
			Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
				return c.InTime(func() (results.Run, error) {
					return measure(ctx, job{Protected: pattern == protected, Config: c, Seed: t.Seed})
				})
			},
		})
	}
	return p, cmp.Or(c.Work.Check(), nil)
}

// measure tells the story once, in processes and in virtual time.
func measure(ctx context.Context, j job) (results.Run, error) {
	ctx, end := context.WithCancel(ctx)
	defer end() // of the replicas, too, if the run fails
	var fleet []*service.Service
	var addresses []string
	for i := range j.Replicas {
		of := j
		of.Seed += uint64(i) << 32
		s, err := service.Start(ctx, j.Spec("", roleReplica, of))
		if err != nil {
			return results.Run{}, err
		}
		fleet, addresses = append(fleet, s), append(addresses, s.Address)
	}
	send := service.Load{Seed: j.Seed, Stretches: []service.Stretch{{Rate: load * float64(j.Replicas) * j.Capacity(), For: j.length()}}}
	began, _ := send.Window()
	c, err := newCrowd(addresses, j)
	if err != nil {
		return results.Run{}, err
	}
	defer c.base.CloseIdleConnections()
	res, err := send.Send(ctx, c.do)
	if err != nil {
		return results.Run{}, err
	}
	run := experiment.FromLoad(res)
	run.Elapsed = j.length().Seconds()
	for _, s := range fleet {
		killed := run.Killed
		if _, err := s.End(ctx, &run, began); err != nil {
			return run, err
		}
		run.Killed = cmp.Or(killed, run.Killed)
	}
	said, err := j.simulate(ctx)
	if err != nil {
		return run, err
	}
	run.Extra = figures(j.Config, c.answered, said)
	run.Params = map[string]any{"replicas": j.Replicas, "trouble": j.Trouble.Seconds(), "after": j.After.Seconds()}
	return run, nil
}

// draws is how many simulations, each with its own random draws, are averaged.
const draws = 10

// simulate is the share of the clients that the simulator says are answered.
func (j job) simulate(ctx context.Context) (answered func(from, to time.Duration) float64, err error) {
	var all []sim.Report
	for n := range uint64(draws) {
		s := j.scenario()
		s.Seed += n
		r, err := sim.RunContext(ctx, s)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return func(from, to time.Duration) (sum float64) {
		for i := range all {
			sum += all[i].Answered(from, to) / draws
		}
		return sum
	}, nil
}

// scenario is the same for the simulator.
func (j job) scenario() sim.Scenario {
	s := sim.Scenario{
		Seed: j.Seed, Duration: j.length(), Record: sim.Record{Interval: service.Step},
		Classes: []sim.Class{{Deadline: patience, Service: sim.Uniform(j.Min, j.Max)}},
		Backend: sim.Degrading(j.Slots, .5),
		Policy:  sim.Unlimited(),
		Fleet:   sim.Fleet{Replicas: j.Replicas, Balancer: sim.PowerOfTwo},
		Retry:   sim.Retry{Attempts: tries, Backoff: backoff, Clients: clients},
		Changes: []sim.Change{{At: j.WarmUp, Speed: 1. / slower}, {At: j.WarmUp + j.Trouble, Speed: 1}},
	}
	s.Arrivals = sim.Poisson(load * s.Capacity())
	if j.Protected {
		s.Policy, s.Retry.Budget = sim.Policy{}, ratio
	}
	return s
}

// figures are the shares of the clients that were answered, in per cent.
func figures(c Config, real, simulated func(from, to time.Duration) float64) map[string]float64 {
	from, to := c.WarmUp, c.WarmUp+c.Trouble
	settled := to + min(settling, c.After/2)
	return map[string]float64{
		"before_real": 100 * real(from/2, from), "before_sim": 100 * simulated(from/2, from),
		"during_real": 100 * real(from, to), "during_sim": 100 * simulated(from, to),
		"after_real": 100 * real(settled, c.length()), "after_sim": 100 * simulated(settled, c.length()),
	}
}
