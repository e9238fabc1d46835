package fan

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
)

// Set-ups other than the kinds of work.
const (
	gridPrefix = "grid, "
	evenPrefix = "break-even, "
	evenLoad   = "over the grid"
	allocSetup = "allocations"
	nestSetup  = "nested, 16 × 16 × 16"
	nestLoad   = "5 µs computed in each"
	hedgeSetup = "stragglers, 1 in 100, and an outage"
	hedgeLoad  = "10 ms, or 1 s"
)

// Cells of Spillway alone.
var (
	changed   = ledger.Key{Setup: "a change of the work", Load: "4 sources, 0.5 µs computed or 2 ms slept", Pattern: Spillway}
	notHedged = ledger.Key{Setup: hedgeSetup, Load: hedgeLoad, Pattern: "spillway, not hedged"}
	hedged    = ledger.Key{Setup: hedgeSetup, Load: hedgeLoad, Pattern: "spillway, hedged"}
)

func sized(prefix, kind string, n int) string { return fmt.Sprintf("%s%s, n = %d", prefix, kind, n) }

func allocLoad(n int) string { return fmt.Sprintf("n = %d", n) }

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Demonstrations are staged by the program.
var Demonstrations = experiment.Staged{Role: "fan-demo-", Program: program, Acts: []experiment.Act{
	{ID: "lost-answers", Title: "the answers that are read before they are there"},
	{ID: "slow-failure", Title: "the database that fails at once, and the caller that waits for the cache"},
	{ID: "swallowed-error", Title: "the cache's error that is dropped"},
	{ID: "killed-by-panic", Title: "the panic in a cache that kills the process"},
}}

// planner collects the groups.
type planner struct {
	Config
	names  []string // contestants
	groups []experiment.Group
}

func plan(c Config) (experiment.Plan, error) {
	if err := c.check(); err != nil {
		return experiment.Plan{}, err
	}
	p := &planner{Config: c, names: Names}
	if len(c.Contestant) > 0 {
		p.names = c.Contestant
	}
	if usage.Race { // the detector would end the process at the race that it shows
		p.names = without(p.names, AsPrinted)
	}
	p.lookups()
	p.grid()
	p.allocations()
	p.inTurns(nestSetup, Computing, "", without(p.names, AsPrinted), Table{Load: nestLoad, Sources: 16, Levels: 3, Database: 5 * time.Microsecond, Cache: 5 * time.Microsecond, Budget: 64})
	if slices.Contains(p.names, Spillway) {
		p.alone(changed, "", RoleChange, func(uint64) any { return nil })
		for _, k := range []ledger.Key{notHedged, hedged} {
			p.alone(k, Virtual, RoleHedging, func(seed uint64) any { return Hedging{k == hedged, c.Calls, seed} })
		}
	}
	return experiment.Plan{Programs: []contestant.Spec{{Program: program, Role: RoleLookups}}, Groups: p.groups, Demos: Demonstrations.Demos()}, nil
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s == name })
}

// lookups are the published sizes.
func (p *planner) lookups() {
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
		p.inTurns(kind, kind, "", p.names, tables...)
	}
}

// named is the table with the number of its sources in its name.
func (t Table) named() Table {
	t.Load = fmt.Sprintf("n = %d, %s", t.Sources, t.Load)
	return t
}

func (p *planner) grid() {
	names := without(p.names, AsPrinted)
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
			if kind != Virtual && slices.Contains(names, Sequential) && slices.Contains(names, Corrected) {
				even = sized(evenPrefix, kind, n)
			}
			p.inTurns(sized(gridPrefix, kind, n), kind, even, names, tables...)
		}
	}
}

// allocations are counted with sources that do nothing.
func (p *planner) allocations() {
	var tables []Table
	for _, n := range p.Sources {
		if n <= 8 {
			tables = append(tables, Table{Load: allocLoad(n), Sources: n})
		}
	}
	names := without(p.names, AsPrinted)
	if slices.Contains(names, Spillway) {
		names = append(names, InParallel, Borrowed)
	}
	p.inTurns(allocSetup, OneProc, "", names, tables...)
}

// tooLong reports sequential lookups that would compute or sleep for too long:
// parallel is faster well before that size.
func (p *planner) tooLong(kind string, t Table) bool {
	longest := 40 * time.Millisecond
	if p.Grid || kind == Sleeping {
		longest = 100 * time.Millisecond
	}
	return kind != Virtual && t.sequential() > longest
}

func (t Table) sequential() time.Duration {
	return (t.Database + time.Duration(t.Sources-1)*t.Cache) * time.Duration(math.Pow(float64(t.Sources), float64(max(t.Levels, 1)-1)))
}

// inTurns adds tables that are measured in one process, and their break-even if even
// names a set-up for it. Spillway and corrected play twice.
func (p *planner) inTurns(setup, kind, even string, names []string, tables ...Table) {
	l := Lookups{Kind: kind, Rounds: p.Rounds, Time: p.Time, Contestants: names}
	var env []string
	beside := ""
	switch {
	case kind == Virtual:
		l.Rounds, l.Time, l.Least = 1, 0, 100 // exact; what as-printed loses is not
		beside = Virtual
	case setup == allocSetup:
		l.Least = 1000 // a collection empties pools before each measurement
	}
	if kind == OneProc {
		env = []string{"GOMAXPROCS=1"}
	}
	for _, twin := range []string{Spillway, Corrected} {
		if slices.Contains(names, twin) {
			l.Contestants = append(slices.Clip(l.Contestants), twin)
		}
	}
	g := experiment.Group{Beside: beside, Label: fmt.Sprintf("%s, %d contestants in turns", setup, len(l.Contestants)), Expect: 200 * time.Millisecond}
	for _, t := range tables {
		if p.tooLong(kind, t) {
			continue
		}
		l.Tables = append(l.Tables, t)
		for i, name := range l.Contestants {
			g.Keys = append(g.Keys, ledger.Key{Setup: setup, Load: t.Load, Pattern: name, Twin: i >= len(names)})
		}
		g.Expect += l.expect(t)
	}
	if len(l.Tables) == 0 {
		return
	}
	if even != "" {
		for _, twin := range []bool{false, true} {
			g.Keys = append(g.Keys, ledger.Key{Setup: even, Load: evenLoad, Pattern: Corrected, Twin: twin})
		}
	}
	g.Run = func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
		l := l
		l.Seed = t.Seed
		figures, err := ask[[][]Figures](ctx, p.Config, RoleLookups, l, env...)
		if err != nil {
			return nil, err
		}
		runs := l.runs(figures)
		if even != "" {
			runs = append(runs, l.breakEven(figures, slices.Index(names, Corrected)), l.breakEven(figures, len(l.Contestants)-1))
		}
		return runs, nil
	}
	p.groups = append(p.groups, g)
}

// expect is how long a table takes.
func (l Lookups) expect(t Table) time.Duration {
	each := time.Duration(l.Rounds+3)*max(l.Time, t.sequential()/2) + 20*time.Millisecond
	switch l.Kind {
	case Virtual:
		each = time.Duration(t.Sources) * time.Millisecond / 2
	case OneProc:
		each = time.Duration(l.Rounds+3)*max(l.Time, t.sequential()) + 20*time.Millisecond
	}
	return time.Duration(len(l.Contestants)) * each
}

// alone adds a cell of Spillway alone.
func (p *planner) alone(key ledger.Key, beside, role string, input func(seed uint64) any) {
	p.groups = append(p.groups, experiment.Group{Keys: []ledger.Key{key}, Beside: beside, Expect: time.Second,
		Run: func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
			extra, err := ask[map[string]float64](ctx, p.Config, role, input(t.Seed))
			return []results.Run{{Extra: extra}}, err
		}})
}

// ask has the program play a role.
func ask[Out any](ctx context.Context, c Config, role string, input any, env ...string) (out Out, err error) {
	exit, err := contestant.Run(ctx, contestant.Spec{Program: program, Role: role, Input: input, MemoryCap: uint64(c.MemoryCap) << 20, Env: env}, &out)
	if err == nil && exit.Killed != "" { // which contestant was the cause is unknown
		err = fmt.Errorf("the process of all contestants was %s", exit.Killed)
	}
	return out, err
}
