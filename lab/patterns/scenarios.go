package patterns

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
	"github.com/spillway-go/spillway/loadgen"
	"github.com/spillway-go/spillway/workerpool"
)

// The scenarios that the source tells of services without a bound, as set-ups.
const (
	Crowd     = "a database of 100 connections" // H6
	Stall     = "a query that takes 30 s"       // H7
	Neighbour = "two services on one database"  // H8
	Shutdown  = "the published shutdown"        // H12
	LongLived = "long-lived connections"        // H14
)

// Contestants of the scenarios alone.
const (
	Queueing = "naive, queueing"    // of the crowd: waits for one of the connections in the driver's pool
	Nobody   = "nobody"             // the neighbour has the database for itself
	Ours     = "workerpool of ours" // Spillway's, of the published size
)

// scenario is one of them.
type scenario struct {
	setup, load string
	contestants []string
	takes       func(Config) time.Duration
	play        func(context.Context, scene) (results.Run, error)
}

var scenarios = []scenario{
	{Crowd, "all users at once", []string{Naive, Queueing, WorkerPool, Ours}, crowdTakes, crowd},
	{Stall, "333 requests a second", []string{Naive, WorkerPool, Ours}, func(c Config) time.Duration { return calm + c.Watch }, stall},
	{Shutdown, "workers and queue full", []string{WorkerPool, Ours}, func(Config) time.Duration { return callersWait }, shutdown},
	{LongLived, "one on each worker", []string{Naive, WorkerPool, Ours}, func(Config) time.Duration { return inASecond }, longLived},
	{Neighbour, "beside 5,000 clients of", []string{Nobody, Naive, WorkerPool, Ours}, func(c Config) time.Duration { return c.Watch + wrapUp }, neighbours},
}

// keys are the cells that the user wants. What the neighbour does alone has a twin.
func (s scenario) keys(c Config) (out []ledger.Key) {
	for _, name := range s.contestants {
		if name == Nobody && (c.wants(Naive) || c.wants(WorkerPool)) || c.wants(name) {
			out = append(out, s.key(name).AndTwin(name == Nobody)...)
		}
	}
	return out
}

func (s scenario) key(contestant string) ledger.Key {
	return ledger.Key{Setup: s.setup, Load: s.load, Pattern: contestant}
}

// scenes are the cells of all scenarios.
func (c Config) scenes() (out []experiment.Cell) {
	for _, s := range scenarios {
		for _, k := range s.keys(c) {
			out = append(out, experiment.Cell{
				Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Beside: besideSustained, Uses: .03, Expect: process + s.takes(c),
				Run: func(ctx context.Context, t experiment.Trial) (run results.Run, err error) {
					in := scene{Config: c, Scenario: s.setup, Contestant: k.Pattern, Seed: t.Seed}
					exit, err := contestant.Run(ctx, contestant.Spec{Role: roleScenario, Input: in, MemoryCap: c.memory()}, &run)
					if exit.Killed != "" {
						run.Killed, run.Params = exit.Killed, in.params()
					}
					run.Process.PeakRSS = max(run.Process.PeakRSS, exit.PeakRSS)
					return run, err
				},
			})
		}
	}
	return out
}

// scene is the input of a contestant: a scenario with one way to answer.
type scene struct {
	Config
	Scenario, Contestant string
	Seed                 uint64
}

func (s scene) workers() int { return cmp.Or(s.Workers, someWorkers) }

// params are the settings that the claims need.
func (s scene) params() map[string]any {
	return map[string]any{"users": float64(s.Users), "workers": float64(s.workers()), "watch_s": s.Watch.Seconds()}
}

// played plays the scene, and adds what its process used.
func played(ctx context.Context, s scene) (results.Run, error) {
	for _, known := range scenarios {
		if known.setup != s.Scenario {
			continue
		}
		p := usage.Start()
		run, err := known.play(ctx, s)
		used := p.Stop()
		run.Elapsed, run.Params, run.Process = used.Seconds, s.params(), experiment.Process(used)
		return run, cmp.Or(err, ctx.Err())
	}
	return results.Run{}, fmt.Errorf("there is no scenario %q", s.Scenario)
}

// answering is what answers look-ups: the published shape, or ours.
type answering interface {
	Look(ctx context.Context, id string) (*specimen.Reply, error)
	Goroutines() int // without those of the callers
	Queued() int
	Close() // as its own shutdown does
}

// by makes a contestant over a store.
func (s scene) by(contestant string, store specimen.Store) (answering, error) {
	if contestant == Queueing {
		contestant = Naive
	}
	if contestant != Ours {
		return specimen.New(contestant, store, specimen.Config{Workers: s.workers(), Queue: s.QueueSize, Wait: s.QueueWait})
	}
	const none = -1 // as the pool writes it: its 0 is a default
	pool, err := workerpool.New(workerpool.Config{MaxWorkers: s.workers(), QueueSize: cmp.Or(s.QueueSize, none), MaxWait: cmp.Or(s.QueueWait, none)})
	return ours{pool, store}, err
}

// ours is Spillway's pool in the place of the published one.
type ours struct {
	*workerpool.Pool
	store specimen.Store
}

func (o ours) Look(ctx context.Context, id string) (*specimen.Reply, error) {
	return workerpool.Do(ctx, o.Pool, func(context.Context) (*specimen.Reply, error) {
		patient, err := o.store.Patient(id)
		return &specimen.Reply{Success: err == nil, Patient: patient}, err
	})
}

func (o ours) Goroutines() int { return o.Stats().Workers }

func (o ours) Queued() int { return o.Stats().Queued }

func (o ours) Close() {
	_ = o.Drain(context.Background()) // which nothing ends early
	o.Pool.Close()
}

// finder is a store that is a function.
type finder func(id string) (*specimen.Patient, error)

// Patient calls f.
func (f finder) Patient(id string) (*specimen.Patient, error) { return f(id) }

// askers ask for one patient after the other; then is told of each answer, and may wait.
func askers(a answering, then func(error)) loadgen.Target {
	return loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome {
		_, err := a.Look(ctx, specimen.ID(int(n)))
		then(err)
		return outcome(err)
	})
}
