// Package routes is experiment R: the effect of a pooled request context in a published
// typed layer over gin, and the cost of a typed route compared with hand-written code
// and other frameworks.
package routes

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
)

// Experiment is experiment R.
type Classic struct{ Config Config }

// ID implements experiment.Experiment.
func (Classic) ID() string { return claims.R.ID }

// Title implements experiment.Experiment.
func (Classic) Title() string { return claims.R.Title }

// Set-ups. Those of the comparison exist for each build.
const (
	Net         = "published shape, net of the harness"
	AsPublished = "published shape, published harness"
	contestOf   = "contest, "
	fiberOf     = "fiber on fasthttp, "
)

// Config is what a user may set.
type Config struct {
	Requests  int    // of a turn; four times as many if nothing is decoded
	Rounds    int    // turns of every contestant in each repeat
	OneBuild  bool   // do not build the contestants with the other encoding/json
	MemoryCap uint64 // bytes for each contestant; 0: none
}

// Defaults is the experiment at full size.
func Defaults() Config {
	return Config{Requests: 2000, Rounds: 12, MemoryCap: 512 << 20}
}

// Quick is a short run.
func Quick() Config {
	c := Defaults()
	c.Requests, c.Rounds = 1000, 4
	return c
}

func (c Config) check() error {
	switch {
	case c.Requests < 1 || c.Requests > 10_000_000:
		return fmt.Errorf("requests is %d: want 1 to 10000000", c.Requests)
	case c.Rounds < 1 || c.Rounds > 1000:
		return fmt.Errorf("rounds is %d: want 1 to 1000", c.Rounds)
	}
	return nil
}

// scaled says how this differs from the experiment at full size.
func (c Config) scaled() string {
	if d := Defaults(); c.Requests != d.Requests || c.Rounds != d.Rounds {
		return fmt.Sprintf("%d rounds of %d requests instead of %d of %d", c.Rounds, c.Requests, d.Rounds, d.Requests)
	}
	return ""
}

// Plan implements experiment.Experiment.
func (e Classic) Plan() (experiment.Plan, error) {
	c := e.Config
	if err := c.check(); err != nil {
		return experiment.Plan{}, err
	}
	plan := experiment.Plan{Demos: demos()}
	var scaled []string
	if s := c.scaled(); s != "" {
		scaled = append(scaled, s)
	}
	other, _ := otherBuild()
	groups := []*group{{config: c, table: tablePublished}, {config: c, table: tableContest, build: thisBuild}, {config: c, table: tableFiber, build: thisBuild}}
	if c.OneBuild {
		scaled = append(scaled, "only the build with "+thisBuild)
	} else if err := canBuild(context.Background()); err != nil {
		scaled = append(scaled, fmt.Sprintf("only the build with %s, because %s (%s)", thisBuild, err, howToBuild(other)))
	} else {
		var program string
		plan.Prepare = func(ctx context.Context) (err error) {
			program, err = build(ctx)
			return err
		}
		groups = append(groups, &group{config: c, table: tableContest, build: other, program: &program}, &group{config: c, table: tableFiber, build: other, program: &program})
	}
	plan.Scaled = strings.Join(scaled, "; ")
	for _, g := range groups {
		plan.Cells = append(plan.Cells, g.cells()...)
	}
	return plan, nil
}

// entry is a contestant, or its twin.
type entry struct {
	name string
	twin bool
}

// entries are all of a table. One contestant of each table has a twin: its difference
// from itself is noise.
func entries(table string) []entry {
	var out []entry
	for _, c := range tables()[table] {
		out = append(out, entry{name: c.name})
		if c.name == Fresh || c.name == Spillway {
			out = append(out, entry{name: c.name, twin: true})
		}
	}
	return out
}

// cellOf is what is measured of an entry.
type cellOf struct {
	entry     entry
	setup     string
	scenario  string
	published bool
}

// group is a table in one build. All its contestants are started at the beginning of a
// repeat, each in a separate process, and take turns, because the cost of a request
// drifts with the load of the machine.
type group struct {
	config  Config
	table   string
	build   string
	program *string // of the other build; nil: this one

	mu   sync.Mutex
	done map[int]bool // repeats that were measured
	have map[cellOf]results.Run
	err  error
}

// todo is everything that is measured.
func (g *group) todo() []cellOf {
	var out []cellOf
	for _, e := range entries(g.table) {
		add := func(setup string, all []string, published bool) {
			for _, scenario := range all {
				if c, err := find(tables()[g.table], e.name); err == nil && c.does(scenario) {
					out = append(out, cellOf{e, setup, scenario, published})
				}
			}
		}
		switch g.table {
		case tablePublished:
			add(Net, append([]string{Untagged}, scenarios...), false)
			add(AsPublished, append([]string{Untagged}, scenarios...), true)
		case tableFiber:
			add(fiberOf+g.build, scenarios, false)
		default:
			add(contestOf+g.build, scenarios, false)
		}
	}
	return out
}

// label is a readable name of the group.
func (g *group) label() string {
	if g.build == "" {
		return fmt.Sprintf("%s: %d processes in turns", g.table, len(entries(g.table)))
	}
	return fmt.Sprintf("%s, %s: %d processes in turns", g.table, g.build, len(entries(g.table)))
}

func (g *group) cells() []experiment.Cell {
	todo := g.todo()
	expect := time.Duration(len(todo)*(g.config.Rounds+1)*g.config.Requests)*6*time.Microsecond + time.Duration(len(entries(g.table)))*60*time.Millisecond
	var out []experiment.Cell
	for _, c := range todo {
		out = append(out, experiment.Cell{
			Setup: c.setup, Load: c.scenario, Pattern: c.entry.name, Twin: c.entry.twin, Beside: g.label(), Expect: expect,
			Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) { return g.run(ctx, c, t) },
		})
	}
	return out
}

// run measures the repeat when its first cell is needed.
func (g *group) run(ctx context.Context, c cellOf, t experiment.Trial) (results.Run, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.done[t.Repeat] {
		g.done = map[int]bool{t.Repeat: true}
		g.have, g.err = g.measure(ctx, t.Seed)
	}
	if g.err != nil {
		return results.Run{}, g.err
	}
	return g.have[c], nil
}

func (g *group) requests(scenario string) int {
	if scenario == Get {
		return 4 * g.config.Requests
	}
	return g.config.Requests
}

// params of every run of the group.
func (g *group) params(requests int) map[string]any {
	return map[string]any{"gomaxprocs": runtime.GOMAXPROCS(0), "requests": requests, "rounds": g.config.Rounds, "build": g.build}
}
