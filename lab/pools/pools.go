// Package pools is the experiment that compares worker pools: the cost of submitting a
// job, of a refusal, of waiting for a result; the memory of idle workers and waiting
// jobs; a burst; and a pool without a configured size against the best fixed size.
//
// The figures of one table are measured in one process, in turns, so that other load
// on the machine affects all contestants. The pools are the program lab/contestants/pools.
package pools

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
)

// Experiment is experiment pools.
type Classic struct{ Config Config }

// ID implements experiment.Experiment.
func (Classic) ID() string { return claims.Pools.ID }

// Title implements experiment.Experiment.
func (Classic) Title() string { return claims.Pools.Title }

// The parts of the experiment.
const (
	Submit = "submit" // jobs handed over: no-op, 1 µs and 20 µs
	Refuse = "refuse" // submissions to a full pool
	Call   = "call"   // results waited for
	Memory = "memory" // of idle workers and queued jobs
	Burst  = "burst"  // a million jobs that wait 10 ms
	Sizing = "sizing" // no number against fixed sizes
)

// Parts of the experiment, in their order.
func Parts() []string { return []string{Submit, Refuse, Call, Memory, Burst, Sizing} }

// Plan implements experiment.Experiment.
func (e Classic) Plan() (experiment.Plan, error) {
	if err := e.Config.check(); err != nil {
		return experiment.Plan{}, err
	}
	p := &planner{Config: e.Config}
	for _, part := range p.Parts {
		map[string]func(){
			Submit: p.submitting, Refuse: p.refusing, Call: p.calling, Memory: p.memory, Burst: p.burst, Sizing: p.sizing,
		}[part]()
	}
	return experiment.Plan{Scaled: p.scaled(), Programs: []contestant.Spec{p.spec(RoleBout, nil)}, Prepare: p.prepare, Cells: p.cells}, nil
}

// planner collects the cells.
type planner struct {
	Config
	cells   []experiment.Cell
	prepare func(context.Context) error // nil: nothing to prepare
	turnsMS int                         // of sizing, set by prepare
}

// among are the chosen contestants that support it.
func (p *planner) among(able []string) []string {
	return slices.DeleteFunc(slices.Clone(able), func(s string) bool { return !slices.Contains(p.Contestants, s) })
}

// producers are the numbers to try, GOMAXPROCS filled in.
func (p *planner) producers() []int {
	var all []int
	for _, n := range p.Producers {
		if n == 0 {
			n = runtime.GOMAXPROCS(0)
		}
		all = append(all, n)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Set-ups, in the words of the report.
const (
	setupRefuse = "refusal by a full pool"
	setupCall   = "a typed result"
	setupMemory = "memory"
	setupBurst  = "burst"
)

const setupJobs = " jobs"

func setupSubmit(work time.Duration) string {
	if work == 0 {
		return "no-op" + setupJobs
	}
	return strings.Replace(work.String(), "µs", " µs", 1) + setupJobs
}

func (p *planner) submitting() {
	for _, work := range p.Works {
		for _, n := range p.producers() {
			p.bout(setupSubmit(work), Bout{What: Submitting, Work: work, Producers: n}, p.among(Submitters()), p.Workers)
		}
	}
}

// The size of a full pool does not matter.
func (p *planner) refusing() {
	for _, n := range p.producers() {
		p.bout(setupRefuse, Bout{What: Refusing, Producers: n}, p.among(Refusers()), p.Workers[:1])
	}
}

func (p *planner) calling() {
	for _, n := range p.producers() {
		p.bout(setupCall, Bout{What: Calling, Producers: n}, p.among(Callers()), p.Workers[:min(2, len(p.Workers))])
	}
}

// bout adds a cell for each entry of a bout, which is run once in each repeat
// for all of them.
func (p *planner) bout(setup string, b Bout, names []string, workers []int) {
	b.Rounds, b.Time, b.Buffer = p.Rounds, p.Time, p.Buffer
	for _, n := range workers {
		for _, name := range names {
			b.Entries = append(b.Entries, Entry{name, n, false})
		}
		if slices.Contains(names, Spillway) {
			b.Entries = append(b.Entries, Entry{Spillway, n, true})
		}
	}
	// Warm-up, collection and start cost about as much as the measurement.
	expect := time.Duration(len(b.Entries)*(b.Rounds+1))*2*b.Time + 500*time.Millisecond
	var once experiment.Shared[[]results.Run]
	for i, e := range b.Entries {
		p.cells = append(p.cells, experiment.Cell{
			Setup: setup, Load: fmt.Sprintf("%d→%d", b.Producers, e.Workers), Pattern: e.Contestant, Twin: e.Twin,
			Beside: fmt.Sprintf("%s by %d producers, %d contestants in turns", setup, b.Producers, len(b.Entries)), Expect: expect,
			Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
				runs, err := once.Of(t.Repeat, func() ([]results.Run, error) { return p.play(ctx, b, t.Seed) })
				if err != nil {
					return results.Run{}, err
				}
				return runs[i], nil
			},
		})
	}
}

func (p *planner) memory() {
	for _, name := range p.among(Submitters()) {
		f := Footprint{name, 1000, 100_000}
		p.alone(setupMemory, "1,000 workers, 100,000 jobs", name, 300*time.Millisecond,
			func(ctx context.Context) (run results.Run, err error) {
				var cost BytesOf
				exit, err := contestant.Run(ctx, p.spec(RoleMemory, f), &cost)
				run.Killed, run.Extra = exit.Killed, map[string]float64{}
				if cost.Worker >= 0 {
					run.Extra["worker_bytes"] = cost.Worker
				}
				if cost.Job >= 0 {
					run.Extra["job_bytes"] = cost.Job
				}
				return run, err
			})
	}
}

func (p *planner) burst() {
	for _, name := range p.among([]string{Spillway, Channel, Ants, Pond, Gammazero}) {
		b := Flood{name, p.BurstJobs, p.BurstWorkers, p.Buffer, p.BurstWork}
		p.alone(setupBurst, fmt.Sprintf("%d x %v, %d workers", b.Jobs, b.Work, b.Workers), name, b.Ideal()*5/4+3*Idle,
			func(ctx context.Context) (run results.Run, err error) {
				var u FloodUsage
				exit, err := contestant.Run(ctx, p.spec(RoleBurst, b), &u)
				run.Killed = exit.Killed
				run.Params = map[string]any{"buffer": b.Buffer}
				if exit.Killed == "" && err == nil {
					run.Extra = map[string]float64{
						"finish": u.Seconds / b.Ideal().Seconds(), "cpu_seconds": u.CPUSeconds, "left": float64(u.Left),
						"peak_rss": float64(max(u.PeakRSS, exit.PeakRSS)), "peak_goroutines": float64(u.PeakGoroutines),
					}
				}
				return run, err
			})
	}
}

// alone adds a cell whose process runs alone on the machine.
func (p *planner) alone(setup, load, pattern string, expect time.Duration, run func(context.Context) (results.Run, error)) {
	p.cells = append(p.cells, experiment.Cell{
		Setup: setup, Load: load, Pattern: pattern, Expect: expect,
		Run: func(ctx context.Context, _ experiment.Trial) (results.Run, error) { return run(ctx) },
	})
}
