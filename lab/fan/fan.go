// Package fan is experiment F: a lookup in a database and caches, one after the other
// or at once. It compares a published parallel version as printed, the same corrected,
// usual code with errgroup and conc, and package fanout; and it measures the
// break-even of this machine.
//
// Here are the plan and the claims. What is measured is the program
// lab/contestants/fan, which the lab builds and starts.
package fan

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/usage"
)

// Experiment is the declaration. This program plays none of its roles.
var Experiment = experiment.Declare(family, help, plan, nil)

const help = `A store asks a database and caches for users and merges what they answer. Asked one after the other (sequential) it takes the sum of their times, asked at once the longest, plus what goroutines cost. Which is faster depends on how long a source takes, on whether it waits or computes, and on whether a second processor is free.

The other contestants are: a published parallel version, which reads the cache's answer before it has waited for it (as-printed; what it loses is counted), the same with that one mistake fixed (corrected), errgroup, conc, and fanout.New(fanout.Config{}) (spillway), which chooses between the two by itself.

The published sizes, 50/50 ms, 500/100 µs and 5/1 µs, are run in virtual time, where waiting is exact and computing free, and computing in real time, with all processors and with one. A grid of equal branches gives the break-even of this machine: how long each must take for goroutines to pay. Claims about a free second processor use only rounds in which there was one. Further: allocations, fan-out within fan-out, a workload that changes, and hedging of stragglers.

All contestants of a table take turns in one process; ratios are taken within a turn. Spillway and the corrected code run twice, so that what they differ from themselves shows the noise. A table lists where Spillway is slower.`

// Config is what a user may set.
type Config struct {
	Grid    bool            `group:"Size" full:"true" help:"Branches of the grid from 0.5 µs to 50 ms, in virtual time too."`
	Sources []int           `short:"n" group:"Size" default:"2,8,64" quick:"2,8" whole:"2" least:"2" most:"256" help:"Sources of a lookup: one database, the rest caches."`
	Branch  []time.Duration `group:"Size" quick:"1µs,20µs,100µs,1ms" placeholder:"D" least:"100ns" most:"1s" help:"How long each source of the grid takes; 1µs to 1ms unless given, 0.5µs to 50ms with --grid."`
	Rounds  int             `group:"Size" default:"5" quick:"3" whole:"7" least:"1" help:"Turns of every contestant in each repeat."`
	Time    time.Duration   `group:"Size" default:"3ms" quick:"1ms" whole:"2ms" full:"5ms" above:"0s" help:"How long each turn is."`
	Calls   int             `group:"Size" default:"20000" quick:"5000" least:"500" help:"Lookups with hedging, in virtual time; fewer than 500 have no p99."`

	MemoryCap int `default:"2048" least:"0" help:"Memory that a process may use, in MiB (Linux only); above it is killed. 0: no cap."`
}

// branches are the durations of the grid, ascending.
func (c Config) branches() []time.Duration {
	const µs = time.Microsecond
	switch {
	case len(c.Branch) > 0:
		return slices.Sorted(slices.Values(c.Branch))
	case c.Grid:
		return []time.Duration{µs / 2, µs, 2 * µs, 5 * µs, 10 * µs, 20 * µs, 50 * µs, 100 * µs, 200 * µs, 500 * µs, 1000 * µs, 5000 * µs, 10_000 * µs, 50_000 * µs}
	}
	return []time.Duration{µs, 5 * µs, 20 * µs, 50 * µs, 100 * µs, 200 * µs, 500 * µs, 1000 * µs}
}

// kinds are the kinds of work of the grid.
var kinds = []string{Computing, OneProc, Yielding, Virtual}

// Set-ups other than the kinds of work.
const (
	gridPrefix = "grid, "
	evenPrefix = "break-even, "
	evenLoad   = "over the grid"
	allocSetup = "allocations"
	sleepSetup = "allocations, sources that sleep"
	nestSetup  = "nested, 16 × 16 × 16"
	nestLoad   = "5 µs computed in each"
	hedgeSetup = "stragglers, 1 in 100, and an outage"
	hedgeLoad  = "10 ms, or 1 s"

	printedSetup = "100,000 calls as printed, whose stores return slices"
	printedCalls = 100_000
	printedWait  = 50 * time.Millisecond // of stores that wait
)

// Cells of Spillway alone.
var (
	changed   = ledger.Key{Setup: "a change of the work", Load: "4 sources, 0.5 µs computed or 2 ms slept", Pattern: Spillway}
	notHedged = ledger.Key{Setup: hedgeSetup, Load: hedgeLoad, Pattern: "spillway, not hedged"}
	hedged    = notHedged.By("spillway, hedged")
)

// printed are the stores of the code as printed: those that wait, and those that do not.
var printed = []ledger.Key{
	{Setup: printedSetup, Load: "stores that wait 50 ms", Pattern: AsPrinted},
	{Setup: printedSetup, Load: "stores that answer at once", Pattern: AsPrinted},
}

func sized(prefix, kind string, n int) string { return fmt.Sprintf("%s%s, n = %d", prefix, kind, n) }

func allocLoad(n int) string { return fmt.Sprintf("n = %d", n) }

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// planner collects what is measured.
type planner struct {
	Config
	experiment.Plan
}

// correct are the contestants that lose no answer.
var correct = []string{Spillway, Sequential, Corrected, ErrGroup, Conc}

func plan(c Config) (experiment.Plan, error) {
	p := &planner{Config: c}
	p.Programs = []contestant.Spec{{Program: program, Role: RoleLookups}}
	p.lookups()
	p.grid()
	p.allocations()
	p.inTurns(nestSetup, Computing, "", correct, Table{Load: nestLoad, Sources: 16, Levels: 3, Database: 5 * time.Microsecond, Cache: 5 * time.Microsecond, Budget: 64})
	if !usage.Race {
		p.asPrinted()
	}
	p.alone(changed, "", RoleChange, func(uint64) any { return nil })
	for _, k := range []ledger.Key{notHedged, hedged} {
		p.alone(k, Virtual, RoleHedging, func(seed uint64) any { return Hedging{k == hedged, c.Calls, seed} })
	}
	return p.Plan, nil
}

// lookups are the published sizes.
func (p *planner) lookups() {
	names := Names
	if usage.Race { // the detector would end the process at the race that as-printed shows
		names = correct
	}
	for _, kind := range []string{Virtual, Sleeping, Computing, OneProc} {
		var tables []Table
		for _, t := range Published {
			// 50 ms is too long to compute, and alone long enough for time.Sleep.
			if long := t.Database >= time.Millisecond; kind == Virtual || long == (kind == Sleeping) {
				for _, t.Sources = range p.Sources {
					tables = append(tables, t.named())
				}
			}
		}
		p.inTurns(kind, kind, "", names, tables...)
	}
}

// named is the table with the number of its sources in its name.
func (t Table) named() Table {
	t.Load = fmt.Sprintf("n = %d, %s", t.Sources, t.Load)
	return t
}

func (p *planner) grid() {
	for _, kind := range kinds {
		if kind == Virtual && !p.Grid {
			continue
		}
		for _, n := range p.Sources {
			var tables []Table
			for _, d := range p.branches() {
				// A duration in one unit, so that names sort by time.
				tables = append(tables, Table{Load: fmt.Sprintf("%v µs", micros(d)), Sources: n, Database: d, Cache: d})
			}
			even := ""
			if kind != Virtual {
				even = sized(evenPrefix, kind, n)
			}
			p.inTurns(sized(gridPrefix, kind, n), kind, even, correct, tables...)
		}
	}
}

// allocations are counted with sources that do nothing, and with sources that sleep.
func (p *planner) allocations() {
	var tables []Table
	for _, n := range p.Sources {
		if n <= 8 {
			tables = append(tables, Table{Load: allocLoad(n), Sources: n, Allocations: true})
		}
	}
	p.inTurns(allocSetup, OneProc, "", append(slices.Clone(correct), InParallel), tables...)
	// A goroutine that sleeps for the first time allocates a timer, so what the published sources
	// do is counted, too.
	p.inTurns(sleepSetup, Sleeping, "", []string{Sequential, Corrected}, Table{Load: allocLoad(2), Sources: 2, Database: 100 * time.Microsecond, Cache: 100 * time.Microsecond, Allocations: true})
}

func (t Table) sequential() time.Duration {
	return (t.Database + time.Duration(t.Sources-1)*t.Cache) * time.Duration(math.Pow(float64(t.Sources), float64(max(t.Levels, 1)-1)))
}

// inTurns adds tables that are measured in one process, and their break-even if even
// names a set-up for it. Spillway and corrected play twice.
func (p *planner) inTurns(setup, kind, even string, names []string, tables ...Table) {
	l := Lookups{Kind: kind, Rounds: p.Rounds, Time: p.Time, Contestants: slices.Clone(names)}
	for _, twin := range []string{Spillway, Corrected} {
		if slices.Contains(names, twin) {
			l.Contestants = append(l.Contestants, twin)
		}
	}
	g := experiment.Group{Label: fmt.Sprintf("%s, %d contestants in turns", setup, len(l.Contestants)), Expect: 200 * time.Millisecond}
	var env []string
	switch {
	case kind == Virtual:
		l.Rounds, l.Time, l.Least = 1, 0, 100 // exact; what as-printed loses is not
		g.Beside = Virtual
	case setup == allocSetup:
		l.Least = 1000 // a collection empties pools before each measurement
	case setup == sleepSetup:
		l.Least, g.Uses = 50, .5
	case kind == Sleeping:
		g.Uses = .25
	}
	if kind == OneProc {
		env = []string{"GOMAXPROCS=1"}
	}
	longest := 40 * time.Millisecond // of a sequential lookup: parallel is faster well before that size
	if p.Grid || kind == Sleeping {
		longest = 100 * time.Millisecond
	}
	for _, t := range tables {
		if kind != Virtual && t.sequential() > longest {
			continue
		}
		l.Tables = append(l.Tables, t)
		g.Keys = append(g.Keys, ledger.Keys(setup, t.Load, l.Contestants)...)
		g.Expect += l.expect(t)
	}
	if len(l.Tables) == 0 {
		return
	}
	if even != "" {
		g.Keys = append(g.Keys, ledger.Key{Setup: even, Load: evenLoad, Pattern: Corrected}.AndTwin(true)...)
	}
	g.Run = func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
		l.Seed = t.Seed
		var figures [][]Figures
		if _, err := experiment.Together(ctx, p.spec(RoleLookups, l, env...), &figures); err != nil {
			return nil, err
		}
		runs := l.runs(figures)
		if even != "" {
			runs = append(runs, l.breakEven(runs, slices.Index(names, Corrected)), l.breakEven(runs, len(l.Contestants)-1))
		}
		return runs, nil
	}
	p.Groups = append(p.Groups, g)
}

// expect is how long a table takes.
func (l Lookups) expect(t Table) time.Duration {
	each := max(l.Time, t.sequential()/2)
	if l.Kind == OneProc {
		each = max(l.Time, t.sequential())
	}
	each = time.Duration(l.Rounds+3)*each + 20*time.Millisecond
	if l.Kind == Virtual {
		each = time.Duration(t.Sources) * time.Millisecond / 2
	}
	return time.Duration(len(l.Contestants)) * each
}

// alone adds a cell of Spillway alone.
func (p *planner) alone(k ledger.Key, beside, role string, input func(seed uint64) any) {
	p.Cells = append(p.Cells, experiment.Cell{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Beside: beside, Expect: time.Second,
		Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
			return experiment.Alone(p.spec(role, input(t.Seed)))(ctx, t)
		}})
}

// asPrinted adds calls of the published code. Each of them may end its process.
func (p *planner) asPrinted() {
	for i, k := range printed {
		calls := Printed{Calls: printedCalls}
		if i == 0 {
			calls.Wait = printedWait
		}
		p.Cells = append(p.Cells, experiment.Cell{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Uses: .5, Expect: time.Second,
			Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
				run, err := experiment.Alone(p.spec(RolePrinted, calls))(ctx, t)
				if err != nil && strings.Contains(err.Error(), "nil pointer dereference") {
					run.Extra, err = map[string]float64{"harmed": 1}, nil
				}
				return run, err
			}})
	}
}

func (c Config) spec(role string, input any, env ...string) contestant.Spec {
	return contestant.Spec{Program: program, Role: role, Input: input, MemoryCap: uint64(c.MemoryCap) << 20, Env: env}
}
