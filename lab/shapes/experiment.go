// Package shapes is experiment G: the cost of handing a small piece of work to a
// goroutine in five shapes, the best number of goroutines for CPU-bound work, and
// whether reusing goroutines or reusing objects saves more.
package shapes

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/burst"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, plan, map[string]contestant.Role{
	roleTurns: contestant.Func(inTurns), roleClock: contestant.Func(byTheClock), roleReuseB: contestant.Func(reuseB),
})

const (
	roleTurns  = "shapes"
	roleClock  = "shapes-clock"
	roleReuseB = "shapes-reuse-b"

	RoleReuseH = "shapes-reuse-h" // played by the program patient, of a Job
)

const help = `The smallest work there is, an integer addition whose result must reach the caller, is done in five shapes: at once (Serial), by a goroutine for each with a channel (SpawnPerRequestChan) or a WaitGroup (SpawnPerRequestWG), by N workers on one channel (PoolSharedChan_N) or with a channel each (PoolPerWorkerChan_N). What is measured is the handing over. The size of the channels' buffers moves the pools more than their number of workers, so every size is judged.

Every shape is measured twice: auto-scaled, in turns with all others in one process, with the start of the workers left out; and as one batch by the wall clock, cold, in a process of its own, with everything. Whether the two disagree is one of the claims.

Two more questions are about real work: under which bound CPU-bound tasks of some 15 µs are done fastest, by a pool, a semaphore or a dispatcher; and whether the reuse of objects saves more processor time for a request than the reuse of goroutines, for the patient API of experiment H and for the 500 KB jobs of experiment B.

The shapes are also plain benchmarks, for benchstat: go test ./lab/shapes -run '^$' -bench . -benchmem -count 10`

// Config is what a user may set.
type Config struct {
	Buffer    []int         `group:"Size" default:"0,1,128" help:"Sizes of the channels' buffers."`
	Workers   []int         `group:"Size" default:"10,100,1000" help:"Sizes of the pools, beside GOMAXPROCS. Claims that speak of others stay open."`
	Rounds    int           `group:"Size" default:"5" full:"7" quick:"3" help:"How often every shape has its turn, in each repeat."`
	Time      time.Duration `group:"Size" default:"40ms" full:"100ms" quick:"5ms" help:"How long a turn is; of processor time where requests wait, which takes longer."`
	Ops       int           `group:"Size" default:"1000000" quick:"100000" help:"By the wall clock: units of work in the one batch."`
	MemoryCap int           `default:"2048" placeholder:"MIB" help:"A contestant that needs more memory than that is killed; 0 sets no limit."`
}

func (c Config) check() error {
	switch {
	case len(c.Buffer) == 0 || slices.Min(c.Buffer) < 0 || slices.Max(c.Buffer) > 1<<20:
		return fmt.Errorf("buffer is %v: want sizes from 0 to %d, or leave the flag out for all of them", c.Buffer, 1<<20)
	case len(c.Workers) == 0 || slices.Min(c.Workers) < 1 || slices.Max(c.Workers) > 100_000:
		return fmt.Errorf("workers is %v: want numbers from 1 to 100000, or leave the flag out for all of them", c.Workers)
	case c.Rounds < 1 || c.Time <= 0 || c.Time > time.Minute:
		return fmt.Errorf("rounds is %d and time %v: want at least 1, and more than 0s and at most 1m", c.Rounds, c.Time)
	case c.Ops < 1:
		return fmt.Errorf("ops is %d: want at least 1", c.Ops)
	case c.MemoryCap < 0:
		return fmt.Errorf("memory-cap is %d: want a number of MiB, or 0 for no limit", c.MemoryCap)
	}
	return nil
}

func plan(c Config) (experiment.Plan, error) {
	if err := c.check(); err != nil {
		return experiment.Plan{}, err
	}
	p := experiment.Plan{Programs: []contestant.Spec{c.spec(RoleReuseH, nil)}}
	units, tasks := Job{Time: c.Time}, Job{Time: c.Time}
	var unitKeys, taskKeys []ledger.Key
	for _, s := range c.units() {
		for _, k := range twice(s.key(auto), s.Kind != PerWorker) {
			unitKeys, units.Shapes = append(unitKeys, k), append(units.Shapes, s)
			p.Cells = append(p.Cells, c.batch(s, k.Twin))
		}
	}
	procs := runtime.GOMAXPROCS(0)
	for _, mechanism := range mechanisms {
		for _, bound := range bounds(procs) {
			for _, k := range twice(boundKey(cpuBound, bound, mechanism), bound == procs) {
				taskKeys, tasks.Shapes = append(taskKeys, k), append(tasks.Shapes, Shape{Kind: mechanism, Workers: bound})
			}
		}
	}
	requests := Job{Time: c.Time, Bound: atOnce, Patients: 10_000, Work: burst.PublishedWork, Patterns: []string{Spawn, PoolReuse, Pool, Pool}}
	requests.Work.Wait /= 10 // as the store of H: waiting uses no processor time
	reuse := func(setup string) []ledger.Key {
		return append([]ledger.Key{boundKey(setup, atOnce, Spawn), boundKey(setup, atOnce, PoolReuse)}, twice(boundKey(setup, atOnce, Pool), true)...)
	}
	p.Groups = []experiment.Group{
		c.inTurns("all shapes, in turns", unitKeys, roleTurns, units, "ns"),
		c.inTurns("CPU-bound tasks under all bounds, in turns", taskKeys, roleTurns, tasks, "ns"),
		c.inTurns("reuse in the set-up of H, in turns", reuse(asH), RoleReuseH, requests, "cpu_ns"),
		c.inTurns("reuse in the set-up of B, in turns", reuse(asB), roleReuseB, requests, "cpu_ns"),
	}
	for i := range p.Groups[2:] {
		p.Groups[2+i].Expect *= 6 // what waits needs so much longer for its processor time
	}
	return p, nil
}

// twice is a cell, and its twin if it has one.
func twice(k ledger.Key, twin bool) []ledger.Key {
	if again := k; twin {
		again.Twin = true
		return []ledger.Key{k, again}
	}
	return []ledger.Key{k}
}

// units are the shapes of the unit of work. Their pools are of GOMAXPROCS workers too.
func (c Config) units() []Shape {
	out := []Shape{{Kind: Serial}, {Kind: SpawnWG}}
	var single []int // buffers that make sense for a channel that carries one value
	for _, b := range c.Buffer {
		single = append(single, min(b, 1))
	}
	for _, b := range sorted(single) {
		out = append(out, Shape{SpawnChan, 0, b})
	}
	for _, b := range sorted(c.Buffer) {
		for _, n := range sorted(append([]int{runtime.GOMAXPROCS(0)}, c.Workers...)) {
			out = append(out, Shape{SharedChan, n, b})
		}
		for _, n := range sorted(c.Workers) {
			out = append(out, Shape{PerWorker, n, b})
		}
	}
	return out
}

// bounds are the limits of concurrency tried for CPU-bound work.
func bounds(procs int) []int {
	return sorted([]int{1, max(procs/2, 1), procs, 2 * procs, 4 * procs, 8 * procs, 32 * procs, 128 * procs})
}

func sorted(ns []int) []int { return slices.Compact(slices.Sorted(slices.Values(ns))) }

func (c Config) spec(role string, job any) contestant.Spec {
	return contestant.Spec{Program: "patient", Role: role, Input: job, MemoryCap: uint64(c.MemoryCap) << 20}
}

// inTurns is a group of players in one process. The clock, which is time or processor
// time, is their figure of that name.
func (c Config) inTurns(label string, keys []ledger.Key, role string, job Job, clock string) experiment.Group {
	const between = 2 * time.Millisecond // turns, for a collection
	return experiment.Group{
		Keys: keys, Label: label, Expect: time.Duration(len(keys)*(c.Rounds+2)) * (job.Time + between),
		Run: func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
			job.Rounds, job.Seed = c.Rounds, t.Seed
			var readings [][]turns.Reading
			exit, err := contestant.Run(ctx, c.spec(role, job), &readings)
			return experiment.InTurns(keys, exit, readings, map[string]func(turns.Reading) float64{clock: turns.Nanos, "allocs": turns.Mallocs, "bytes": turns.Bytes}), err
		},
	}
}

// batch is one batch by the wall clock, in a process of its own.
func (c Config) batch(s Shape, twin bool) experiment.Cell {
	const perUnit, start = 200 * time.Nanosecond, 30 * time.Millisecond
	k := s.key(clock)
	return experiment.Cell{
		Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: twin, Expect: time.Duration(c.Ops)*perUnit + start,
		Run: experiment.Alone(c.spec(roleClock, batchJob{s, c.Ops})),
	}
}
