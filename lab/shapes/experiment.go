// Package shapes is experiment G: the cost of handing a small piece of work to a
// goroutine in five shapes, the best number of goroutines for CPU-bound work, and
// whether reusing goroutines or reusing objects saves more.
package shapes

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/burst"
	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
)

// Experiment is experiment G.
type Classic struct{ Config Config }

// ID implements experiment.Experiment.
func (Classic) ID() string { return claims.G.ID }

// Title implements experiment.Experiment.
func (Classic) Title() string { return claims.G.Title }

// Set-ups.
const (
	Auto     = "auto-scaled"               // as package testing does
	Clock    = "one batch, wall clock"     // as the first publication did
	CPUBound = "CPU-bound tasks, bounded"  // G6
	AsH      = "reuse in the set-up of H"  // G9
	AsB      = "reuse in the set-up of B"  // G9
	noBuffer = "no channel, or one for it" // the load of shapes whose channel has no buffer to choose
)

const (
	roleShape  = "shapes"
	roleReuseB = "shapes-reuse-b"

	RoleReuseH = "shapes-reuse-h" // played by the program patient, of a ReuseJob
)

// Roles are the roles of its contestants that need no patient API.
func Roles() map[string]contestant.Role {
	return map[string]contestant.Role{roleShape: contestant.Func(measure), roleReuseB: contestant.Func(reuseB)}
}

// program plays the role that needs the patient API.
const program = "patient"

// Config is what a user may set.
type Config struct {
	Buffers   []int         // of the channels
	Workers   []int         // of the pools
	BenchTime time.Duration // least length of an auto-scaled measurement
	Ops       int           // units of a batch by the wall clock
	Requests  int           // of G9
	MemoryCap uint64        // bytes for each contestant; 0: none
}

// Defaults is the experiment at full size. Every pool size that a claim speaks
// of is in it.
func Defaults() Config {
	return Config{
		Buffers: []int{0, 1, 128}, Workers: []int{10, 100, 1000},
		BenchTime: 300 * time.Millisecond, Ops: 1_000_000, Requests: 6_000, MemoryCap: 2 << 30,
	}
}

func (c Config) check() error {
	for _, n := range c.Buffers {
		if n < 0 || n > 1<<20 {
			return fmt.Errorf("buffer is %d: want 0 to %d", n, 1<<20)
		}
	}
	for _, n := range c.Workers {
		if n < 1 || n > 100_000 {
			return fmt.Errorf("workers is %d: want 1 to 100000", n)
		}
	}
	switch {
	case len(c.Buffers) == 0 || len(c.Workers) == 0:
		return fmt.Errorf("no buffer or no workers: leave the flags out for all of them")
	case c.BenchTime <= 0 || c.BenchTime > time.Minute:
		return fmt.Errorf("benchtime is %v: want more than 0s and at most 1m", c.BenchTime)
	case c.Ops < 1:
		return fmt.Errorf("ops is %d: want at least 1", c.Ops)
	case c.Requests < 1:
		return fmt.Errorf("requests is %d: want at least 1", c.Requests)
	}
	return nil
}

// scaled says how this differs from the experiment at full size.
func (c Config) scaled() string {
	d := Defaults()
	var parts []string
	own := func(differs bool, format string, args ...any) {
		if differs {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	own(c.BenchTime != d.BenchTime, "measurements of %v instead of %v", c.BenchTime, d.BenchTime)
	own(c.Ops != d.Ops, "batches of %d by the wall clock instead of %d", c.Ops, d.Ops)
	own(c.Requests != d.Requests, "%d requests instead of %d where reuse is compared", c.Requests, d.Requests)
	own(!slices.Equal(c.Buffers, d.Buffers), "buffers %v instead of %v", c.Buffers, d.Buffers)
	own(!slices.Equal(c.Workers, d.Workers), "pools of %v workers instead of %v", c.Workers, d.Workers)
	return strings.Join(parts, "; ")
}

// bounds are the limits of concurrency tried for CPU-bound work.
func bounds(procs int) []int {
	all := []int{1, procs / 2, procs, 2 * procs, 4 * procs, 8 * procs, 32 * procs, 128 * procs}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(n int) bool { return n < 1 })
}

// Plan implements experiment.Experiment.
func (e Classic) Plan() (experiment.Plan, error) {
	if err := e.Config.check(); err != nil {
		return experiment.Plan{}, err
	}
	p := &planner{Config: e.Config}
	for _, setup := range []string{Auto, Clock} {
		p.shape(setup, Serial, 0, 0, noBuffer)
		p.shape(setup, SpawnWG, 0, 0, noBuffer)
		for _, buffer := range p.channelBuffers() {
			p.shape(setup, SpawnChan, 0, buffer, bufferLabel(buffer))
		}
		for _, buffer := range p.Buffers {
			for _, workers := range p.pools() {
				p.shape(setup, SharedChan, workers, buffer, bufferLabel(buffer))
			}
			for _, workers := range p.Workers {
				p.shape(setup, PerWorker, workers, buffer, bufferLabel(buffer))
			}
		}
	}
	procs := runtime.GOMAXPROCS(0)
	for _, mechanism := range mechanisms {
		for _, bound := range bounds(procs) {
			p.add(CPUBound, boundLabel(bound), mechanism, roleShape, 2*p.BenchTime, job{Shape: mechanism, Workers: bound, For: p.BenchTime})
		}
		p.add(CPUBound, boundLabel(procs), mechanism, roleShape, 2*p.BenchTime, job{Shape: mechanism, Workers: procs, For: p.BenchTime}).Twin = true
	}
	for _, pattern := range []string{Spawn, Pool, PoolReuse} {
		p.reuse(pattern, false)
	}
	p.reuse(Pool, true)
	return experiment.Plan{Scaled: p.scaled(), Programs: []contestant.Spec{{Program: program, Role: RoleReuseH}}, Cells: p.cells}, nil
}

var mechanisms = []string{boundPool, boundSem, boundDispatch}

// planner collects the cells.
type planner struct {
	Config
	cells []experiment.Cell
}

// channelBuffers are those that make sense for a channel that carries one value.
func (c Config) channelBuffers() []int {
	var out []int
	for _, n := range c.Buffers {
		out = append(out, min(n, 1))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// pools are the sizes of the shared-channel pools: GOMAXPROCS too.
func (c Config) pools() []int {
	all := append([]int{runtime.GOMAXPROCS(0)}, c.Workers...)
	slices.Sort(all)
	return slices.Compact(all)
}

func bufferLabel(n int) string { return fmt.Sprintf("buffer %d", n) }

// shape adds a shape measured in one way, and where ratios by the wall clock
// are to be compared, its twin.
func (p *planner) shape(setup, shape string, workers, buffer int, load string) {
	j := job{Shape: shape, Workers: workers, Buffer: buffer, For: p.BenchTime}
	expect := 2 * p.BenchTime
	if setup == Clock {
		j.Ops, expect = p.Ops, time.Duration(p.Ops)*300*time.Nanosecond
	}
	p.add(setup, load, label(shape, workers), roleShape, expect, j)
	if setup == Clock && (shape == SpawnChan || shape == SharedChan) {
		p.add(setup, load, label(shape, workers), roleShape, expect, j).Twin = true
	}
}

// reuse adds what G9 compares.
func (p *planner) reuse(pattern string, twin bool) {
	const users, patients = 100, 10_000
	h := ReuseJob{Pattern: pattern, Requests: 2 * p.Requests, Bound: users, Patients: patients}
	p.add(AsH, boundLabel(users), pattern, RoleReuseH, time.Duration(2*p.Requests/users)*10*time.Millisecond, h).Twin = twin
	b := ReuseJob{Pattern: pattern, Requests: p.Requests, Bound: users, Work: burst.PublishedWork}
	p.add(AsB, boundLabel(users), pattern, roleReuseB, time.Duration(p.Requests/users)*25*time.Millisecond, b).Twin = twin
}

func (p *planner) add(setup, load, pattern, role string, expect time.Duration, input any) *experiment.Cell {
	p.cells = append(p.cells, experiment.Cell{Setup: setup, Load: load, Pattern: pattern, Expect: expect + 20*time.Millisecond,
		Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
			todo := input
			if j, ok := input.(ReuseJob); ok {
				j.Seed = t.Seed
				todo = j
			}
			var run results.Run
			exit, err := contestant.Run(ctx, contestant.Spec{Program: program, Role: role, Input: todo, MemoryCap: p.MemoryCap}, &run)
			run.Killed = exit.Killed
			run.Process.PeakRSS = max(run.Process.PeakRSS, exit.PeakRSS)
			return run, err
		}})
	return &p.cells[len(p.cells)-1]
}
