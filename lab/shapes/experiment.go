// Package shapes is experiment G: the cost of handing a small piece of work to a
// goroutine in five shapes, the best number of goroutines for CPU-bound work, and
// whether reusing goroutines or reusing objects saves more.
package shapes

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/bouts"
	"github.com/spillway-go/spillway/lab/callgrind"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
	"github.com/spillway-go/spillway/load/usage"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, plan, map[string]contestant.Role{
	roleTurns: turns.Role(nil, Shape.player), roleReuse: turns.Role(usage.CPU, burstJobs), roleClock: contestant.Func(byTheClock),
})

const (
	roleTurns = "shapes"       // Shapes in turns
	roleReuse = "shapes-reuse" // patterns of what is reused, in turns
	roleClock = "shapes-clock" // a batchJob; "ns"

	RoleCountH = "shapes-count-h" // Served, to be counted: played by the program patient, whose functions have names
)

const help = `The smallest work there is, an integer addition whose result must reach the caller, is done in five shapes: at once (Serial), by a goroutine for each with a channel (SpawnPerRequestChan) or a WaitGroup (SpawnPerRequestWG), by N workers on one channel (PoolSharedChan_N) or with a channel each (PoolPerWorkerChan_N). What is measured is the handing over. The size of the channels' buffers moves the pools more than their number of workers, so every size is judged.

Every shape is measured in two ways: auto-scaled, in turns with all others in one process, with the start of the workers left out; and by the wall clock, in batches of a million, each cold and in a process of its own, with everything in it. Of several batches the median counts. Whether the two ways disagree is one of the claims.

Two more questions are about real work: under which bound CPU-bound tasks of some 15 µs are done fastest, by a pool, a semaphore or a dispatcher; and whether the reuse of objects saves more than the reuse of goroutines: processor time for the 500 KB jobs of experiment B and, where Valgrind is installed, instructions for the patient API of experiment H, both in their published shape.

The shapes are also plain benchmarks, for benchstat: go test ./lab/shapes -run '^$' -bench . -benchmem -count 10`

// Config is what a user may set.
type Config struct {
	Rounds  int           `group:"Size" default:"20" full:"28" quick:"3" whole:"5" least:"1" help:"How often every shape has its turn, in each repeat."`
	Time    time.Duration `group:"Size" default:"10ms" full:"25ms" quick:"5ms" whole:"9ms" above:"0s" most:"1m" help:"How long a turn is; of processor time where requests wait."`
	Ops     int           `group:"Size" default:"1000000" quick:"100000" least:"1" help:"By the wall clock: units of work in a batch."`
	Batches int           `group:"Size" default:"3" quick:"1" whole:"1" least:"1" help:"By the wall clock: batches of each pool in each repeat, of which the median counts; of spawning, on which every ratio rests, twice as many."`
}

func plan(c Config) (p experiment.Plan, err error) {
	handed := experiment.Figures{nanos.Key: turns.Nanos, allocs.Key: turns.Mallocs, bytes.Key: turns.Bytes}
	table := func(label string) bouts.Table[Shape] {
		return bouts.Table[Shape]{Config: turns.Config{Rounds: c.Rounds, Time: c.Time}, Label: label, Spec: spec(roleTurns, nil), Figures: handed}
	}
	all, collected, tasks := table("all shapes, in turns"), table("spawning and shared channels with the collector on, in turns"), table("CPU-bound tasks under all bounds, in turns")
	collected.Time, collected.Rounds, collected.Collector = 2*c.Time, (c.Rounds+1)/2, true // a turn has few collections: one of twice the time is more even
	procs := runtime.GOMAXPROCS(0)
	for _, s := range units(procs) {
		all.Add(s.key(auto), s.Kind != PerWorker, s)
		if s.Kind == SpawnChan || s.Kind == SharedChan && slices.Contains(sizes, s.Workers) {
			collected.Add(s.key(collects), true, s)
		}
		c.byTheClock(&p, s)
	}
	for _, mechanism := range mechanisms {
		for _, bound := range bounds(procs) {
			tasks.Add(boundKey(cpuBound, bound, mechanism), bound == procs, Shape{Kind: mechanism, Workers: bound})
		}
	}
	for _, t := range []bouts.Table[Shape]{all, collected, tasks} {
		t.To(&p)
	}
	reused := bouts.Table[string]{
		Config: turns.Config{Rounds: c.Rounds, Time: c.Time, Least: 2 * atOnce}, Label: asB + ", in turns", Spec: spec(roleReuse, nil),
		Takes:   2 * c.Time, // what waits needs so much longer for its processor time
		Figures: experiment.Figures{cpu.Key: turns.AllNanos, allocs.Key: turns.Mallocs, bytes.Key: turns.Bytes},
	}
	counted := bouts.Table[string]{Config: turns.Config{Rounds: 3, Least: 1000}, Label: countH, Spec: spec(RoleCountH, nil)}
	counted.Takes, counted.Spec.MemoryCap = time.Second, 0 // Valgrind has memory of its own
	for _, pattern := range []string{Spawn, PoolReuse, Pool} {
		reused.Add(boundKey(asB, atOnce, pattern), pattern == Pool, pattern)
		counted.Add(boundKey(countH, atOnce, pattern), pattern == Pool, pattern)
	}
	counted.Add(boundKey(countH, atOnce, AsPrinted), false, AsPrinted)
	reused.To(&p)
	if callgrind.Installed() {
		counted.Counted(&p)
		p.Programs = []contestant.Spec{counted.Spec}
	}
	return p, nil
}

// units are the shapes of the unit of work. Their pools are of so many workers too.
func units(procs int) []Shape {
	out := []Shape{{Kind: Serial}, {Kind: SpawnWG}, {Kind: SpawnWGEach}, {Kind: Semaphore, Workers: procs}}
	for _, b := range buffers {
		if s := (Shape{SpawnChan, 0, min(b, 1)}); !slices.Contains(out, s) { // its channel carries one value
			out = append(out, s)
		}
		for _, n := range sorted(append([]int{procs}, sizes...)...) {
			out = append(out, Shape{SharedChan, n, b})
		}
		for _, n := range sizes {
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

func spec(role string, job any) contestant.Spec {
	return contestant.Spec{Program: "patient", Role: role, Input: job, MemoryCap: 2 << 30}
}

// byTheClock adds cells of a shape whose batches are timed by the wall clock, one process after the
// other.
func (c Config) byTheClock(p *experiment.Plan, s Shape) {
	const perUnit, start = 200 * time.Nanosecond, 30 * time.Millisecond
	batches := c.Batches
	if s.Kind == SpawnChan {
		batches *= 2
	}
	one := experiment.Alone(spec(roleClock, batchJob{s, c.Ops}))
	for _, k := range s.key(clock).AndTwin(s.Kind != PerWorker) {
		p.Cells = append(p.Cells, experiment.Cell{
			Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Expect: time.Duration(batches) * (time.Duration(c.Ops)*perUnit + start),
			Run: func(ctx context.Context, t experiment.Trial) (out results.Run, err error) {
				var all []float64
				for range batches {
					if out, err = one(ctx, t); err != nil || out.Killed != "" {
						return out, err
					}
					all = append(all, out.Extra[nanos.Key])
				}
				out.Extra[nanos.Key] = ledger.Median(all)
				return out, nil
			},
		})
	}
}
