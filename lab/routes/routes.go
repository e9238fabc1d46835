// Package routes is experiment R: the effect of a pooled request context in a published
// typed layer over gin, and the cost of a typed route compared with hand-written code
// and other frameworks. The contestants are the program lab/contestants/web.
package routes

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
	Time      time.Duration // of a block
	Rounds    int           // blocks of every contestant in each repeat
	OneBuild  bool          // without the build with the other encoding/json
	MemoryCap uint64        // bytes for each process; 0: none
}

// Defaults is the experiment at full size.
func Defaults() Config {
	return Config{Time: 5 * time.Millisecond, Rounds: 30, MemoryCap: 512 << 20}
}

// Quick is a short run.
func Quick() Config {
	c := Defaults()
	c.Time, c.Rounds = 3*time.Millisecond, 12
	return c
}

func (c Config) check() error {
	switch {
	case c.Time <= 0 || c.Time > time.Minute:
		return fmt.Errorf("time is %v: want more than 0s and at most 1m", c.Time)
	case c.Rounds < 1 || c.Rounds > 1000:
		return fmt.Errorf("rounds is %d: want 1 to 1000", c.Rounds)
	}
	return nil
}

// scaled says how this differs from the experiment at full size.
func (c Config) scaled() string {
	var parts []string
	if d := Defaults(); c.Time != d.Time || c.Rounds != d.Rounds {
		parts = append(parts, fmt.Sprintf("%d rounds of %v instead of %d of %v", c.Rounds, c.Time, d.Rounds, d.Time))
	}
	if c.OneBuild {
		parts = append(parts, "only the build with "+StdJSON)
	}
	return strings.Join(parts, "; ")
}

// Plan implements experiment.Experiment.
func (e Classic) Plan() (experiment.Plan, error) {
	c := e.Config
	if err := c.check(); err != nil {
		return experiment.Plan{}, err
	}
	plan := experiment.Plan{Scaled: c.scaled(), Demos: demos()}
	builds := []string{StdJSON, JSONv2}
	if c.OneBuild {
		builds = builds[:1]
	}
	groups := []*group{{config: c, table: TablePublished, build: StdJSON}}
	for _, build := range builds {
		plan.Programs = append(plan.Programs, spec(RoleMeasure, build, nil, 0))
		groups = append(groups, &group{config: c, table: TableContest, build: build}, &group{config: c, table: TableFiber, build: build})
	}
	for _, g := range groups {
		plan.Cells = append(plan.Cells, g.cells()...)
	}
	return plan, nil
}

// group is a table in one build, measured in one process.
type group struct {
	config Config
	table  string
	build  string
	once   experiment.Shared[[][]results.Run] // by match and entry
}

// matches are those of the table. A contestant that is compared with itself has a twin:
// its difference is noise.
func (g *group) matches() []Match {
	scenarios, harnesses := Scenarios, []bool{false}
	if g.table == TablePublished {
		scenarios, harnesses = append([]string{Untagged}, Scenarios...), []bool{false, true}
	}
	var out []Match
	for _, published := range harnesses {
		for _, scenario := range scenarios {
			m := Match{Scenario: scenario, Published: published}
			for _, name := range Tables[g.table] {
				if Does(name, scenario) {
					m.Entries = append(m.Entries, Entry{Name: name})
				}
				if name == Fresh || name == Spillway {
					m.Entries = append(m.Entries, Entry{name, true})
				}
			}
			out = append(out, m)
		}
	}
	return out
}

func (g *group) setup(m Match) string {
	switch {
	case g.table == TableContest:
		return contestOf + g.build
	case g.table == TableFiber:
		return fiberOf + g.build
	case m.Published:
		return AsPublished
	}
	return Net
}

func (g *group) cells() []experiment.Cell {
	var out []experiment.Cell
	for i, m := range g.matches() {
		for k, e := range m.Entries {
			out = append(out, experiment.Cell{
				Setup: g.setup(m), Load: m.Scenario, Pattern: e.Name, Twin: e.Twin,
				Beside: fmt.Sprintf("%s, %s: contestants in turns", g.table, g.build),
				Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
					all, err := g.once.Of(t.Repeat, func() ([][]results.Run, error) { return g.measure(ctx, t.Seed) })
					if err != nil {
						return results.Run{}, err
					}
					return all[i][k], nil
				},
			})
		}
	}
	for i := range out { // with the warm-up and the collections between blocks
		out[i].Expect = time.Duration(len(out)*(g.config.Rounds+4)) * (g.config.Time + 5*time.Millisecond/2)
	}
	return out
}

// measure plays all matches in a process of their own.
func (g *group) measure(ctx context.Context, seed uint64) ([][]results.Run, error) {
	matches := g.matches()
	job := Job{Table: g.table, Matches: matches, Rounds: g.config.Rounds, Time: g.config.Time, Seed: seed}
	var got Measured
	exit, err := contestant.Run(ctx, spec(RoleMeasure, g.build, job, g.config.MemoryCap), &got)
	switch {
	case err != nil:
		return nil, err
	case exit.Killed != "": // which contestant was the cause is unknown
		return nil, fmt.Errorf("the process of all contestants was %s", exit.Killed)
	case got.Build != g.build:
		return nil, fmt.Errorf("the contestants were built with %s instead of %s: leave GOEXPERIMENT unset", got.Build, g.build)
	}
	out := make([][]results.Run, len(matches))
	for i, m := range matches {
		at := func(e Entry) int { return slices.Index(m.Entries, e) }
		harness := got.Readings[i][at(Entry{Name: Nothing})]
		for k, e := range m.Entries {
			run := g.newRun(m, e, got.Readings[i][k], harness)
			run.Process.PeakRSS = exit.PeakRSS
			out[i] = append(out[i], run)
		}
		if us := at(Entry{Name: Spillway}); us >= 0 {
			behind(out[i][us], m.Entries, out[i])
		}
	}
	return out, nil
}

// params of every run of the group.
func (g *group) params(requests int) map[string]any {
	return map[string]any{"gomaxprocs": runtime.GOMAXPROCS(0), "requests": requests, "rounds": g.config.Rounds, "build": g.build}
}
