// Package routes is experiment R: what a pooled request context is worth in a published
// typed layer over gin, and what a typed route costs beside hand-written code and other
// frameworks. The contestants are the program lab/contestants/web.
package routes

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
)

// Experiment is the declaration. The program lab/contestants/web plays its roles.
var Experiment = experiment.Declare(family, help, plan, nil)

const help = `A published typed layer over gin takes the context that it gives to handlers from a sync.Pool. What does that save, and what does it risk? And what does a typed route cost beside the same written by hand, or another framework?

Every contestant serves two routes with the same fields, the same checks and the same answer: a patient of a ward is created from path, query and body (JSON, or a form), or one is looked up by id. There are five scenarios, as published: JSON, a form, JSON with a field of 500 characters, JSON on all processors at once, and GET.

Half of the published time was its harness, which makes a request and a recorder for every iteration. Here both are reused, and their cost with a handler that does nothing is subtracted. The published harness runs too, so that its share is a figure. The contestants of a scenario take short turns in one process, in random order. What counts is the processor time, the collector's included. fiber is no net/http handler, so it is compared separately.

The contestants are built twice, the second time with GOEXPERIMENT=jsonv2, which takes a minute once. The goals of Spillway's own routes are judged in that build, with the default one beside. Last, a demonstration: goroutines that still have their request's context when the handler has returned.`

// Config is what a user may set.
type Config struct {
	Contestant []string      `placeholder:"NAME" help:"Only these, such as spillway or \"gin by hand\". Claims that need another one stay open."`
	Time       time.Duration `group:"Size" default:"5ms" quick:"3ms" help:"How long a turn is."`
	Rounds     int           `group:"Size" default:"30" quick:"12" help:"How often every contestant has its turn in each scenario, in each repeat."`
	OneBuild   bool          `group:"Size" help:"Do not build the contestants a second time, with GOEXPERIMENT=jsonv2. The goals of Spillway's own routes then stay open."`
	MemoryCap  int           `default:"512" placeholder:"MIB" help:"A process that needs more memory than that is killed; 0 sets no limit."`
}

func (c Config) check() error {
	switch {
	case c.Time <= 0 || c.Time > time.Minute:
		return fmt.Errorf("time is %v: want more than 0s and at most 1m", c.Time)
	case c.Rounds < 1 || c.Rounds > 1000:
		return fmt.Errorf("rounds is %d: want 1 to 1000", c.Rounds)
	case c.MemoryCap < 0:
		return fmt.Errorf("memory-cap is %d: want a number of MiB, or 0 for no limit", c.MemoryCap)
	}
	return experiment.Known("contestant", c.Contestant, slices.Concat(Contest, Shape, OnFasthttp))
}

// Set-ups. Those of the comparison exist for each build.
const (
	Net         = "published shape, net of the harness"
	AsPublished = "published shape, published harness"
	contestOf   = "contest, "
	fiberOf     = "fiber on fasthttp, "
	late        = "after the handler has returned"
)

func plan(c Config) (experiment.Plan, error) {
	if err := c.check(); err != nil {
		return experiment.Plan{}, err
	}
	p := experiment.Plan{Demos: demos()}
	add := func(setup, build string, scenarios, players []string) {
		for _, scenario := range scenarios {
			if m := c.match(setup, build, scenario, players); len(m.Players) > 1 {
				p.Groups = append(p.Groups, m.group())
			}
		}
	}
	shaped := append([]string{Untagged}, Scenarios...)
	add(Net, StdJSON, shaped, Shape)
	add(AsPublished, StdJSON, shaped, Shape)
	for _, build := range []string{StdJSON, JSONv2} {
		if c.OneBuild && build == JSONv2 {
			continue
		}
		p.Programs = append(p.Programs, spec(RoleMeasure, build, nil, 0))
		add(contestOf+build, build, Scenarios, Contest)
		add(fiberOf+build, build, Scenarios, OnFasthttp)
	}
	for _, name := range []string{Spillway, GinTyped} {
		if c.plays(name) {
			p.Cells = append(p.Cells, c.lateCell(name))
		}
	}
	return p, nil
}

func (c Config) plays(name string) bool {
	return len(c.Contestant) == 0 || slices.Contains(c.Contestant, name)
}

// match is a scenario in one set-up, measured in one process.
type match struct {
	Job
	setup, build string
	memoryCap    int
}

// match is among those of the players who are asked for and can do the scenario, with
// the harness as the last.
func (c Config) match(setup, build, scenario string, players []string) match {
	m := match{Job{Scenario: scenario, Published: setup == AsPublished, Rounds: c.Rounds, Time: c.Time}, setup, build, c.MemoryCap}
	for i, name := range players {
		if i == len(players)-1 || c.plays(name) && Does(name, scenario) {
			m.Players = append(m.Players, name)
		}
	}
	return m
}

func (m match) group() experiment.Group {
	const start, between = 300 * time.Millisecond, 5 * time.Millisecond / 2 // turns, for a collection
	g := experiment.Group{Run: m.run, Expect: start + time.Duration(len(m.Players)*(m.Rounds+4))*(m.Time+between)}
	for i, name := range m.Players {
		g.Keys = append(g.Keys, ledger.Key{Setup: m.setup, Load: m.Scenario, Pattern: name, Twin: slices.Contains(m.Players[:i], name)})
	}
	return g
}

func (m match) run(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
	m.Seed = t.Seed
	var got Measured
	exit, err := contestant.Run(ctx, spec(RoleMeasure, m.build, m.Job, m.memoryCap), &got)
	switch {
	case err != nil:
		return nil, err
	case exit.Killed != "": // which contestant was the cause is unknown
		return nil, fmt.Errorf("the process of all contestants was %s", exit.Killed)
	case got.Build != m.build:
		return nil, fmt.Errorf("the contestants were built with %s instead of %s: leave GOEXPERIMENT unset", got.Build, m.build)
	}
	harness := len(m.Players) - 1
	runs := make([]results.Run, len(m.Players))
	for i, readings := range got.Readings {
		runs[i] = m.figures(readings, got.Readings[harness], i == harness)
		runs[i].Process.PeakRSS = exit.PeakRSS
	}
	if us := slices.Index(m.Players, Spillway); us >= 0 {
		for i, name := range m.Players[:harness] {
			if ratios := runs[us].Ratios(&runs[i], processor.Key); len(ratios) > 0 && !slices.Contains([]string{Spillway, SpillwayTimed, GinTyped}, name) {
				ledger.Keep(&runs[i], "behind", ratios)
			}
		}
	}
	return runs, nil
}

// figures are those of one player, net of the harness in the same round.
func (m match) figures(readings, harness []turns.Reading, isHarness bool) results.Run {
	run := results.Run{
		Process: results.Process{ReuseRate: -1}, Extra: map[string]float64{},
		Params: map[string]any{"gomaxprocs": runtime.GOMAXPROCS(0), "requests": readings[0].N, "rounds": m.Rounds, "build": m.build},
	}
	shape := m.setup == Net || m.setup == AsPublished // of which contention and pauses are claimed
	for key, figure := range map[string]func(turns.Reading) float64{
		processor.Key: turns.AllNanos, clock.Key: turns.WallNanos, allocs.Key: turns.Mallocs, "bytes": turns.Bytes,
	} {
		if key == clock.Key && !shape {
			continue
		}
		all, costs := turns.Each(readings, figure), turns.Each(harness, figure)
		if m.Published {
			ledger.Keep(&run, key+total, all)
		}
		if share := 100 * ledger.Median(costs) / ledger.Median(all); m.Published && key == processor.Key && !isHarness && !math.IsNaN(share) {
			run.Extra["harness_share"] = share
		}
		nets := slices.Clone(all)
		for i := range nets {
			if !isHarness {
				nets[i] -= costs[i]
			}
		}
		ledger.Keep(&run, key, nets)
	}
	var pauses []time.Duration
	for _, r := range readings {
		run.Elapsed += r.Wall.Seconds()
		run.Process.CPUSeconds += (r.Clock + r.Collector).Seconds()
		run.Process.Mallocs += r.Mallocs
		run.Process.AllocBytes += r.Bytes
		pauses = append(pauses, r.Pause)
	}
	if shape && !isHarness {
		slices.Sort(pauses)
		p99 := pauses[int(math.Ceil(.99*float64(len(pauses))))-1]
		run.Process.GCPauseP99 = p99.Seconds()
		run.Extra[pause.Key], run.Extra["pauses"] = 1e6*p99.Seconds(), float64(len(pauses))
	}
	return run
}
