package fan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
)

// Set-ups other than the kinds of work.
const (
	gridPrefix  = "grid, "
	allocSetup  = "allocations"
	nestSetup   = "nested, 16 × 16 × 16"
	changeSetup = "a change of the work"
	hedgeSetup  = "stragglers, 1 in 100, and an outage"
)

func gridSetup(kind string, n int) string { return fmt.Sprintf("%s%s, n = %d", gridPrefix, kind, n) }

// published are the durations of the database and the cache.
var published = [][2]time.Duration{
	{50 * time.Millisecond, 50 * time.Millisecond}, {500 * time.Microsecond, 100 * time.Microsecond}, {5 * time.Microsecond, time.Microsecond},
}

func lookupLoad(n int, d [2]time.Duration) string {
	unit, name := time.Microsecond, "µs"
	if d[1] >= time.Millisecond {
		unit, name = time.Millisecond, "ms"
	}
	return fmt.Sprintf("n = %d, %d/%d %s", n, d[0]/unit, d[1]/unit, name)
}

// branchLoad is a duration in one unit, so that names sort by time.
func branchLoad(d time.Duration) string { return fmt.Sprintf("%v µs", micros(d)) }

// Plan implements experiment.Experiment.
func (e Classic) Plan() (experiment.Plan, error) {
	if err := e.Config.check(); err != nil {
		return experiment.Plan{}, err
	}
	p := &planner{Config: e.Config}
	if raceEnabled { // the detector would end the process at the race that it shows
		p.Contestants = without(p.Contestants, AsPrinted)
	}
	p.lookups()
	p.grid()
	p.allocations()
	p.nested()
	p.changes()
	p.hedging()
	return experiment.Plan{Scaled: e.Config.scaled(), Cells: p.cells, Demos: demos()}, nil
}

// planner collects the cells.
type planner struct {
	Config
	cells []experiment.Cell
}

// tooLong reports sequential lookups that would compute or sleep for too long:
// parallel is faster well before that size.
func (c Config) tooLong(kind string, n int, d [2]time.Duration) bool {
	longest := 40 * time.Millisecond
	if c.Grid || kind == Sleeping {
		longest = 100 * time.Millisecond
	}
	return kind != Virtual && d[0]+time.Duration(n-1)*d[1] > longest
}

// lookups are the published sizes.
func (p *planner) lookups() {
	for _, d := range published {
		for _, n := range p.Sources {
			kinds := []string{Virtual, Computing, OneProc}
			if d[0] >= time.Millisecond { // too long to compute, and long enough for time.Sleep
				kinds = []string{Virtual, Sleeping}
			}
			for _, kind := range kinds {
				if !p.tooLong(kind, n, d) {
					p.bout(kind, lookupLoad(n, d), kind, n, d, p.Contestants)
				}
			}
		}
	}
}

func (p *planner) grid() {
	right := without(p.Contestants, AsPrinted)
	for _, kind := range p.kinds() {
		for _, n := range p.Sources {
			for _, d := range p.branches() {
				both := [2]time.Duration{d, d}
				if !p.tooLong(kind, n, both) {
					p.bout(gridSetup(kind, n), branchLoad(d), kind, n, both, right)
				}
			}
		}
	}
}

// allocations are counted with sources that do almost nothing.
func (p *planner) allocations() {
	names := without(p.Contestants, AsPrinted)
	if slices.Contains(names, Spillway) {
		names = append(names, InParallel, Borrowed)
	}
	for _, n := range p.Sources {
		if n <= 8 {
			p.bout(allocSetup, fmt.Sprintf("n = %d", n), OneProc, n, [2]time.Duration{}, names)
		}
	}
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s == name })
}

// bout adds a cell for each contestant of a bout, which is run once in each
// repeat for all of them.
func (p *planner) bout(setup, load, kind string, n int, d [2]time.Duration, names []string) {
	b := bout{Kind: kind, Sources: n, Database: d[0], Cache: d[1], Rounds: p.Rounds, Time: p.Time}
	for _, name := range names {
		b.Entries = append(b.Entries, entry{name, false})
	}
	if slices.Contains(names, Spillway) {
		b.Entries = append(b.Entries, entry{Spillway, true})
	}
	per := d[0] + time.Duration(n-1)*d[1]/2
	expect := time.Duration(len(b.Entries)*b.Rounds)*max(2*b.Time, per) + time.Duration(len(b.Entries)*warmLeast)*per + 150*time.Millisecond
	if kind == Virtual {
		expect = 200 * time.Millisecond
	}
	var once experiment.Shared[[]results.Run]
	for i, e := range b.Entries {
		p.cells = append(p.cells, experiment.Cell{
			Setup: setup, Load: load, Pattern: e.Contestant, Twin: e.Twin, Expect: expect,
			Beside: fmt.Sprintf("%s, %s, %d contestants in turns", setup, load, len(b.Entries)),
			Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
				runs, err := once.Of(t.Repeat, func() ([]results.Run, error) { return b.run(ctx, t.Seed, p.MemoryCap) })
				if err != nil {
					return results.Run{}, err
				}
				return runs[i], nil
			},
		})
	}
}

// add adds a cell: role produces the result, figures turns it into figures.
func add[Out any](p *planner, setup, load, pattern, role string, expect time.Duration, input func(seed uint64) any, figures func(Out) map[string]float64) {
	p.cells = append(p.cells, experiment.Cell{
		Setup: setup, Load: load, Pattern: pattern, Expect: expect,
		Run: func(ctx context.Context, t experiment.Trial) (run results.Run, err error) {
			var out Out
			exit, err := contestant.Run(ctx, contestant.Spec{Role: role, Input: input(t.Seed), MemoryCap: p.MemoryCap}, &out)
			run.Killed = exit.Killed
			if err == nil && exit.Killed == "" {
				run.Extra = figures(out)
			}
			return run, err
		},
	})
}

func (p *planner) nested() {
	n := nesting{Width: 16, Depth: 3, Leaf: 5 * time.Microsecond, Budget: 64, Rounds: p.Rounds}
	for _, name := range []string{Spillway, Sequential, Corrected, ErrGroup, Conc} {
		if slices.Contains(p.Contestants, name) {
			n.Names = append(n.Names, name)
		}
	}
	var once experiment.Shared[[]map[string]nested]
	for _, name := range n.Names {
		p.cells = append(p.cells, experiment.Cell{
			Setup: nestSetup, Load: "5 µs computed in each", Pattern: name, Beside: nestSetup, Expect: 2 * time.Second,
			Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
				rounds, err := once.Of(t.Repeat, func() (rounds []map[string]nested, err error) {
					n.Seed = t.Seed
					exit, err := contestant.Run(ctx, contestant.Spec{Role: roleNest, Input: n, MemoryCap: p.MemoryCap}, &rounds)
					if err == nil && exit.Killed != "" {
						err = fmt.Errorf("the process of all contestants was %s", exit.Killed)
					}
					return rounds, err
				})
				run := results.Run{Extra: map[string]float64{}}
				var ns, behind []float64
				for i, r := range rounds {
					run.Extra[roundKey(i)] = r[name].NS
					ns = append(ns, r[name].NS)
					behind = append(behind, r[Spillway].NS/r[name].NS)
					run.Extra["goroutines"] = max(run.Extra["goroutines"], r[name].Goroutines)
				}
				run.Extra["ns"] = median(ns)
				if slices.Contains(n.Names, Spillway) {
					run.Extra["behind"] = median(behind)
				}
				return run, err
			},
		})
	}
}

func (p *planner) changes() {
	if !slices.Contains(p.Contestants, Spillway) {
		return
	}
	c := change{Sources: 4, Quick: 500 * time.Nanosecond, Slow: 2 * time.Millisecond, Settle: 2000, Most: 1000}
	add(p, changeSetup, "4 sources, 0.5 µs computed or 2 ms slept", Spillway, roleChange, time.Second, func(uint64) any { return c },
		func(c changed) map[string]float64 {
			return map[string]float64{"to_parallel": c.ToParallel, "to_sequential": c.ToSequential}
		})
}

// Patterns of the hedging.
const (
	NotHedged = "spillway, not hedged"
	Hedged    = "spillway, hedged"
)

func (p *planner) hedging() {
	if !slices.Contains(p.Contestants, Spillway) {
		return
	}
	for name, on := range map[string]bool{NotHedged: false, Hedged: true} {
		h := hedging{Hedged: on, Calls: p.Calls, Outage: p.Calls / 10, Usual: 10 * time.Millisecond, Straggle: time.Second, Straggler: .01}
		add(p, hedgeSetup, "10 ms, or 1 s", name, roleHedge, 2*time.Second, func(seed uint64) any { h := h; h.Seed = seed; return h },
			func(h hedged) map[string]float64 {
				return map[string]float64{"p50": h.P50, "p99": h.P99, "extra": 100 * h.Extra, "outage": 100 * h.Outage, "cancelled": h.Cancelled}
			})
	}
}
