package patterns

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/postgres"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/load/usage"
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

// scenario is one of them, over a model of a database or over a real one.
type scenario struct {
	setup, load string
	contestants []string
	takes       func(c Config, contestant string) time.Duration
	play        func(context.Context, *stage) (results.Run, error)
	name        string // of --scenario, over the real database; empty: over a model
	together    bool   // there its contestants play at the same time: nearly all of it is waiting
}

const (
	allAtOnce = "all users at once"
	atAPace   = "333 requests a second"
	besideOf  = "beside 5,000 clients of"
)

var scenarios = []scenario{
	{setup: RealCrowd, name: "crowd", load: allAtOnce, contestants: []string{Unprotected, Pooled, Told, Adaptive}, takes: realCrowdTakes, play: realCrowd},
	{setup: RealStall, name: "stall", load: atAPace, contestants: []string{Unqueued, Pooled, Adaptive}, takes: realStallTakes, play: realStall, together: true},
	{setup: RealNeighbour, name: "neighbours", load: besideOf, contestants: []string{Nobody, Unprotected, Pooled, Adaptive}, takes: realNeighboursTake, play: realNeighbours},
	{setup: Crowd, load: allAtOnce, contestants: []string{Naive, Queueing, WorkerPool, Ours}, takes: crowdTakes, play: crowd},
	{setup: Stall, load: atAPace, contestants: []string{Naive, WorkerPool, Ours}, takes: stallTakes, play: stall},
	{setup: Shutdown, load: "workers and queue full", contestants: []string{WorkerPool, Ours}, takes: shutdownTakes, play: shutdown},
	{setup: LongLived, load: "one on each worker", contestants: []string{Naive, WorkerPool, Ours}, takes: longLivedTakes, play: longLived},
	{setup: Neighbour, load: besideOf, contestants: []string{Nobody, Naive, WorkerPool, Ours}, takes: neighboursTake, play: neighbours},
}

// find is the scenario that is this set-up; one without a play if there is none.
func find(setup string) scenario {
	for _, s := range scenarios {
		if s.setup == setup {
			return s
		}
	}
	return scenario{setup: setup}
}

// keyOf is a cell of the scenario that is this set-up.
func keyOf(setup, contestant string) ledger.Key {
	return ledger.Key{Setup: setup, Load: find(setup).load, Pattern: contestant}
}

// keys are the cells that the user wants. What the neighbour does alone has a twin, and is
// nothing without one to compare it with.
func (s scenario) keys(c Config) (out []ledger.Key) {
	for _, name := range s.contestants {
		if name == Nobody && slices.ContainsFunc(s.contestants[1:], c.wants) || name != Nobody && c.wants(name) {
			out = append(out, keyOf(s.setup, name).AndTwin(name == Nobody)...)
		}
	}
	return out
}

// scenes are the cells of all scenarios, over the real database or over a model.
func (c Config) scenes(real bool) (out []experiment.Cell) {
	for _, s := range scenarios {
		if real != (s.name != "") || real && !experiment.Wanted(c.Scenario, s.name) {
			continue
		}
		for _, k := range s.keys(c) {
			cell := experiment.Cell{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Beside: besideSustained, Uses: .03, Expect: process + s.takes(c, k.Pattern)}
			if real {
				cell.Beside, cell.Uses, cell.Expect = "", 0, cell.Expect+2*process
			}
			if s.together {
				cell.Beside = s.setup
			}
			cell.Run = func(ctx context.Context, t experiment.Trial) (results.Run, error) {
				in := scene{Config: c, Scenario: s.setup, Contestant: k.Pattern, Seed: t.Seed}
				if real {
					return in.onPostgres(ctx)
				}
				return c.run(ctx, c.spec(roleScenario, in), in.params())
			}
			out = append(out, cell)
		}
	}
	return out
}

// scene is a scenario with one way to answer. Over a model it is the input of a contestant.
type scene struct {
	Config
	Scenario, Contestant string
	Seed                 uint64
}

// stage is where a scene is played.
type stage struct {
	scene
	database *postgres.Database // nil: a model
}

func (s scene) workers() int { return cmp.Or(s.Workers, someWorkers) }

// params are the settings that the claims need.
func (s scene) params() map[string]any {
	return map[string]any{"users": float64(s.Users), "workers": float64(s.workers()), "watch_s": s.Watch.Seconds()}
}

// played plays the scene over a model, and adds what its process used.
func played(ctx context.Context, s scene) (results.Run, error) {
	play := find(s.Scenario).play
	if play == nil {
		return results.Run{}, fmt.Errorf("there is no scenario %q", s.Scenario)
	}
	p := usage.Start()
	run, err := play(ctx, &stage{scene: s})
	used := p.Stop()
	run.Elapsed, run.Params, run.Process = used.Seconds, s.params(), experiment.Process(used)
	return run, cmp.Or(err, ctx.Err())
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

// asking is a store that finds everybody, as soon as a model of a database has answered.
func asking(ctx context.Context, database *service.Database) finder {
	return func(id string) (*specimen.Patient, error) {
		if err := database.Ask(ctx); err != nil {
			return nil, err
		}
		return specimen.Made(id), nil
	}
}

// askers ask for one patient after the other; then is told of each answer, and may wait.
func askers(a answering, then func(error)) loadgen.Target {
	return loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome {
		_, err := a.Look(ctx, specimen.ID(int(n)))
		then(err)
		return outcome(err)
	})
}
