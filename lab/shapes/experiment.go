// Package shapes is experiment G: the cost of handing a small piece of work to a
// goroutine in five shapes, the best number of goroutines for CPU-bound work, and
// whether reusing goroutines or reusing objects saves more.
package shapes

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/callgrind"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, plan, map[string]contestant.Role{
	roleTurns: contestant.Func(inTurns), roleClock: contestant.Func(byTheClock), roleReuseH: contestant.Func(reuseH), roleReuseB: contestant.Func(reuseB),
})

const (
	roleTurns  = "shapes"
	roleClock  = "shapes-clock"
	roleReuseH = "shapes-reuse-h"
	roleReuseB = "shapes-reuse-b"

	RoleCountH = "shapes-count-h" // played by the program patient, whose functions have names
)

const help = `The smallest work there is, an integer addition whose result must reach the caller, is done in five shapes: at once (Serial), by a goroutine for each with a channel (SpawnPerRequestChan) or a WaitGroup (SpawnPerRequestWG), by N workers on one channel (PoolSharedChan_N) or with a channel each (PoolPerWorkerChan_N). What is measured is the handing over. The size of the channels' buffers moves the pools more than their number of workers, so every size is judged.

Every shape is measured in two ways: auto-scaled, in turns with all others in one process, with the start of the workers left out; and by the wall clock, in batches of a million, each cold and in a process of its own, with everything in it. Of several batches the median counts. Whether the two ways disagree is one of the claims.

Two more questions are about real work: under which bound CPU-bound tasks of some 15 µs are done fastest, by a pool, a semaphore or a dispatcher; and whether the reuse of objects saves more processor time for a request than the reuse of goroutines, for the patient API of experiment H and for the 500 KB jobs of experiment B, both in their published shape. Where Valgrind is installed, the instructions of the former are counted.

The shapes are also plain benchmarks, for benchstat: go test ./lab/shapes -run '^$' -bench . -benchmem -count 10`

// Config is what a user may set.
type Config struct {
	Buffer    []int         `group:"Size" default:"0,1,128" least:"0" most:"1048576" help:"Sizes of the channels' buffers."`
	Workers   []int         `group:"Size" default:"10,100,1000" least:"1" most:"100000" help:"Sizes of the pools, beside GOMAXPROCS. Claims that speak of others stay open."`
	Rounds    int           `group:"Size" default:"20" full:"28" quick:"3" whole:"8" least:"1" help:"How often every shape has its turn, in each repeat; where goroutines or objects are reused in the set-up of H, eight times as often."`
	Time      time.Duration `group:"Size" default:"10ms" full:"25ms" quick:"5ms" above:"0s" most:"1m" help:"How long a turn is; of processor time where requests wait."`
	Ops       int           `group:"Size" default:"1000000" quick:"100000" least:"1" help:"By the wall clock: units of work in a batch."`
	Batches   int           `group:"Size" default:"3" quick:"1" whole:"1" least:"1" help:"By the wall clock: batches of each pool in each repeat, of which the median counts; of spawning, on which every ratio rests, twice as many."`
	MemoryCap int           `default:"2048" placeholder:"MIB" least:"0" help:"A contestant that needs more memory than that is killed; 0 sets no limit."`
}

func plan(c Config) (experiment.Plan, error) {
	var p experiment.Plan
	units, tasks := Job{Time: c.Time, Rounds: c.Rounds}, Job{Time: c.Time, Rounds: c.Rounds}
	collected := Job{Time: 2 * c.Time, Rounds: (c.Rounds + 1) / 2, Collector: true} // a turn has few collections: one of twice the time is more even
	var unitKeys, collectedKeys, taskKeys []ledger.Key
	for _, s := range c.units() {
		for _, k := range s.key(auto).AndTwin(s.Kind != PerWorker) {
			unitKeys, units.Shapes = append(unitKeys, k), append(units.Shapes, s)
		}
		if s.Kind == SpawnChan || s.Kind == SharedChan && slices.Contains(c.Workers, s.Workers) {
			for _, k := range s.key(collects).AndTwin(true) {
				collectedKeys, collected.Shapes = append(collectedKeys, k), append(collected.Shapes, s)
			}
		}
		const perUnit, start = 200 * time.Nanosecond, 30 * time.Millisecond
		for _, k := range s.key(clock).AndTwin(s.Kind != PerWorker) { // each batch in a process of its own
			p.Cells = append(p.Cells, experiment.Cell{
				Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin,
				Expect: time.Duration(c.batches(s)) * (time.Duration(c.Ops)*perUnit + start), Run: c.timed(s),
			})
		}
	}
	procs := runtime.GOMAXPROCS(0)
	for _, mechanism := range mechanisms {
		for _, bound := range bounds(procs) {
			for _, k := range boundKey(cpuBound, bound, mechanism).AndTwin(bound == procs) {
				taskKeys, tasks.Shapes = append(taskKeys, k), append(tasks.Shapes, Shape{Kind: mechanism, Workers: bound})
			}
		}
	}
	handed := experiment.Figures{"ns": turns.Nanos, "allocs": turns.Mallocs, "bytes": turns.Bytes}
	p.Groups = []experiment.Group{
		c.inTurns("all shapes, in turns", unitKeys, roleTurns, units.Rounds, units.Time, func(seed uint64) any { units.Seed = seed; return units }, handed),
		c.inTurns("spawning and shared channels with the collector on, in turns", collectedKeys, roleTurns, collected.Rounds, collected.Time, func(seed uint64) any { collected.Seed = seed; return collected }, handed),
		c.inTurns("CPU-bound tasks under all bounds, in turns", taskKeys, roleTurns, tasks.Rounds, tasks.Time, func(seed uint64) any { tasks.Seed = seed; return tasks }, handed),
	}
	p.Groups = append(p.Groups, c.reuses()...)
	if callgrind.Installed() {
		p.Programs = []contestant.Spec{c.spec(RoleCountH, nil)}
	}
	return p, nil
}

// units are the shapes of the unit of work. Their pools are of GOMAXPROCS workers too.
func (c Config) units() []Shape {
	out := []Shape{{Kind: Serial}, {Kind: SpawnWG}, {Kind: SpawnWGEach}}
	for _, b := range sorted(c.Buffer...) {
		if s := (Shape{SpawnChan, 0, min(b, 1)}); !slices.Contains(out, s) { // its channel carries one value
			out = append(out, s)
		}
		for _, n := range sorted(append([]int{runtime.GOMAXPROCS(0)}, c.Workers...)...) {
			out = append(out, Shape{SharedChan, n, b})
		}
		for _, n := range sorted(c.Workers...) {
			out = append(out, Shape{PerWorker, n, b})
		}
	}
	return out
}

// bounds are the limits of concurrency tried for CPU-bound work.
func bounds(procs int) []int {
	return sorted(1, max(procs/2, 1), procs, 2*procs, 4*procs, 8*procs, 32*procs, 128*procs)
}

func sorted(ns ...int) []int { return slices.Compact(slices.Sorted(slices.Values(ns))) }

func (c Config) spec(role string, job any) contestant.Spec {
	return contestant.Spec{Program: "patient", Role: role, Input: job, MemoryCap: uint64(c.MemoryCap) << 20}
}

// inTurns is a group of players in one process.
func (c Config) inTurns(label string, keys []ledger.Key, role string, rounds int, turn time.Duration, input func(seed uint64) any, figures experiment.Figures) experiment.Group {
	const between = 2 * time.Millisecond // turns, for a collection
	return experiment.Group{
		Keys: keys, Label: label, Expect: time.Duration(len(keys)*(rounds+2)) * (turn + between),
		Run: func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
			return experiment.Play(ctx, keys, c.spec(role, input(t.Seed)), figures)
		},
	}
}

// batches is how many of a shape are timed in each repeat.
func (c Config) batches(s Shape) int {
	if s.Kind == SpawnChan {
		return 2 * c.Batches
	}
	return c.Batches
}

// timed times batches of a shape by the wall clock, one process after the other.
func (c Config) timed(s Shape) func(context.Context, experiment.Trial) (results.Run, error) {
	one := experiment.Alone(c.spec(roleClock, batchJob{s, c.Ops}))
	return func(ctx context.Context, t experiment.Trial) (out results.Run, err error) {
		var all []float64
		for range c.batches(s) {
			if out, err = one(ctx, t); err != nil || out.Killed != "" {
				return out, err
			}
			all = append(all, out.Extra[nanos.Key])
		}
		out.Extra[nanos.Key] = ledger.Median(all)
		return out, nil
	}
}
