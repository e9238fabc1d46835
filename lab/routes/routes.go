// Package routes is experiment R: what a pooled request context is worth in a published
// typed layer over gin, and what a typed route costs beside hand-written code and other
// frameworks. The contestants are the program lab/contestants/web.
package routes

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/callgrind"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
	"github.com/spillway-go/spillway/load/usage"
)

// Experiment is the declaration. The program lab/contestants/web plays its roles.
var Experiment = experiment.Declare(family, help, plan, nil)

const help = `A published typed layer over gin takes the context that it gives to handlers from a sync.Pool. What does that save, and what does it risk? And what does a typed route cost beside the same written by hand, or another framework?

Every contestant serves two routes with the same fields, the same checks and the same answer: a patient of a ward is created from path, query and body (JSON, or a form), or one is looked up by id. There are five scenarios, as published: JSON, a form, JSON with a field of 500 characters, JSON on all processors at once, and GET.

Half of the published time was its harness, which makes a request and a recorder for every iteration. Here both are reused, and their cost with a handler that does nothing is subtracted. The published harness runs too, so that its share is a figure. The contestants of a scenario take short turns in one process, in random order. What counts is the processor time, the collector's included; its collections and pauses are counted over 100,000 requests, with the collector left alone. Where Valgrind is installed, instructions are counted too, and decide what pooling is worth: differences of tens of nanoseconds drown in the times. fiber is no net/http handler, so it is compared separately.

The contestants are built twice, the second time with GOEXPERIMENT=jsonv2, which takes a minute once. The goals of Spillway's own routes are judged in that build, with the default one beside. Last, a demonstration: goroutines that still have their request's context when the handler has returned.`

// Config is what a user may set.
type Config struct {
	Contestant []string      `placeholder:"NAME" help:"Only these, such as spillway or \"gin by hand\". Claims that need another one stay open."`
	Time       time.Duration `group:"Size" default:"5ms" quick:"2ms" above:"0s" most:"1m" help:"How long a turn is."`
	Rounds     int           `group:"Size" default:"25" quick:"6" whole:"10" least:"1" most:"1000" help:"How often every contestant has its turn in each scenario, in each repeat."`
	Counted    int           `group:"Size" default:"250" quick:"60" whole:"150" least:"1" most:"100000" help:"Requests of which instructions are counted, three times in each repeat, where Valgrind is installed."`
	OneBuild   bool          `group:"Size" help:"Do not build the contestants a second time, with GOEXPERIMENT=jsonv2. The goals of Spillway's own routes then stay open."`
	MemoryCap  int           `default:"512" placeholder:"MIB" least:"0" help:"A process that needs more memory than that is killed; 0 sets no limit."`
}

// Set-ups. Those of the comparison exist for each build.
const (
	Net         = "published shape, net of the harness"
	AsPublished = "published shape, published harness"
	LeftAlone   = "published shape, the collector left alone"
	contestOf   = "contest, "
	fiberOf     = "fiber on fasthttp, "
	ByCount     = "published shape, instructions"
	late        = "after the handler has returned"
)

// So many contexts are read after their handler has returned.
const (
	lateRequests = 20_000
	lateLoad     = "20,000 requests"
)

func plan(c Config) (p experiment.Plan, err error) {
	if c.Contestant, err = experiment.Chosen(c.Contestant, slices.Compact(slices.Concat(Contest, Shape, []string{Explicit}, OnFasthttp))); err != nil {
		return p, err
	}
	p.Demos = demos()
	add := func(setup, build string, scenarios, players []string) {
		for _, scenario := range scenarios {
			if g := c.group(setup, build, scenario, players); len(g.Keys) > 1 {
				p.Groups = append(p.Groups, g)
			}
		}
	}
	shaped := append([]string{Untagged}, Scenarios...)
	add(Net, StdJSON, shaped, Shape)
	add(AsPublished, StdJSON, shaped, Shape)
	if slices.Contains(c.Contestant, Fresh) && slices.Contains(c.Contestant, Pooled) {
		p.Groups = append(p.Groups, c.collector())
	}
	if g := c.counts(); callgrind.Installed() && len(g.Keys) > len(Scenarios) {
		p.Groups = append(p.Groups, g)
	}
	for _, build := range []string{StdJSON, JSONv2} {
		if c.OneBuild && build == JSONv2 {
			continue
		}
		p.Programs = append(p.Programs, spec(RoleMeasure, build, nil, 0))
		add(contestOf+build, build, Scenarios, Contest)
		add(fiberOf+build, build, Scenarios, OnFasthttp)
	}
	for _, name := range []string{Spillway, GinTyped} {
		if slices.Contains(c.Contestant, name) {
			p.Cells = append(p.Cells, c.lateCell(name))
		}
	}
	return p, nil
}

// group is a scenario in one set-up, measured in one process, with those of the players
// who were chosen and can do it, and with the harness as the last.
func (c Config) group(setup, build, scenario string, players []string) experiment.Group {
	const start, between = 200 * time.Millisecond, 5 * time.Millisecond / 2 // turns, for a collection
	job := Job{Scenario: scenario, Published: setup == AsPublished, Rounds: c.Rounds, Time: c.Time}
	for i, name := range players {
		if i == len(players)-1 || slices.Contains(c.Contestant, name) && Does(name, scenario) {
			job.Players = append(job.Players, name)
		}
	}
	keys := ledger.Keys(setup, scenario, job.Players)
	return experiment.Group{
		Keys: keys, Expect: start + time.Duration(len(keys)*(job.Rounds+4))*(job.Time+between),
		Run: func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
			job.Seed = t.Seed
			var got Measured
			exit, err := experiment.Together(ctx, spec(RoleMeasure, build, job, c.MemoryCap), &got)
			if err == nil && got.Build != build {
				err = fmt.Errorf("the contestants were built with %s instead of %s: leave GOEXPERIMENT unset", got.Build, build)
			}
			if err != nil {
				return nil, err
			}
			runs := experiment.InTurns(keys, exit, nil, nil)
			for i, readings := range got.Readings {
				runs[i].Params["build"], runs[i].Params["requests"] = build, readings[0].N
				addFigures(&runs[i], keys[i], readings, got.Readings[len(keys)-1])
			}
			experiment.Behind(keys[:len(keys)-1], runs, processor.Key)
			return runs, nil
		},
	}
}

// addFigures adds those of a cell, net of the harness in the same round.
func addFigures(run *results.Run, k ledger.Key, readings, harness []turns.Reading) {
	published, isHarness := k.Setup == AsPublished, k.Pattern == Nothing || k.Pattern == NothingFast
	keep := func(key string, figure func(turns.Reading) float64) {
		all, costs := turns.Each(readings, figure), turns.Each(harness, figure)
		if published {
			ledger.Keep(run, key+total, slices.Clone(all))
		}
		if whole := ledger.Median(all); published && key == processor.Key && !isHarness && whole > 0 {
			run.Extra["harness_share"] = 100 * ledger.Median(costs) / whole
		}
		for i := range all {
			if !isHarness {
				all[i] -= costs[i]
			}
		}
		ledger.Keep(run, key, all)
	}
	keep(processor.Key, turns.AllNanos)
	keep(allocs.Key, turns.Mallocs)
	keep("bytes", turns.Bytes)
	run.Extra[whole.Key] = math.Round(run.Extra[allocs.Key])
	if published || k.Setup == Net { // of which contention is claimed
		keep(clock.Key, turns.WallNanos)
	}
}

// collector is JSON with the collector left alone. In turns of a few collections it would
// count those that the turn before has begun.
func (c Config) collector() experiment.Group {
	const each = 15 * time.Microsecond
	job := Job{Scenario: JSON, Players: []string{Fresh, Fresh, Pooled}}
	keys := ledger.Keys(LeftAlone, JSON, job.Players)
	return experiment.Group{
		Keys: keys, Label: LeftAlone, Expect: time.Duration(len(keys)) * CollectedRequests * each,
		Run: func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
			job.Seed = t.Seed
			var got []Collected
			exit, err := experiment.Together(ctx, spec(RoleCollect, StdJSON, job, c.MemoryCap), &got)
			runs := experiment.InTurns(keys, exit, nil, nil)
			for i, g := range got {
				runs[i].Extra = map[string]float64{collections.Key: float64(g.Collections), pause.Key: float64(g.Pause.Microseconds())}
			}
			return runs, err
		},
	}
}

// counts is the instructions of a request, in one process: other load does not change
// them.
func (c Config) counts() experiment.Group {
	job := CountJob{Rounds: 3, Requests: c.Counted, Scenarios: []string{JSON, Form, Short, Large, Get}}
	for i, name := range Counted {
		if i == len(Counted)-1 || slices.Contains(c.Contestant, name) {
			job.Players = append(job.Players, name)
		}
	}
	var keys []ledger.Key
	for _, scenario := range job.Scenarios {
		keys = append(keys, ledger.Keys(ByCount, scenario, job.Players)...)
	}
	return experiment.Group{
		Keys: keys, Label: ByCount, Uses: .5, Expect: time.Second + time.Duration(len(keys)*job.Requests)*3*time.Millisecond,
		Run: func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
			job := job
			job.Seed = t.Seed
			counted, err := callgrind.Count(ctx, spec(RoleCount, StdJSON, job, 0), len(keys), job.Rounds, job.Seed)
			if err != nil {
				return nil, err
			}
			runs := experiment.InTurns(keys, contestant.Exit{}, nil, nil)
			for i, k := range keys {
				each := len(job.Players)
				harness, all := counted[i/each*each+each-1], slices.Clone(counted[i])
				for round := range all {
					if k.Pattern != Nothing {
						all[round] -= harness[round]
					}
					all[round] /= float64(job.Requests)
				}
				ledger.Keep(&runs[i], instructions.Key, all)
			}
			return runs, nil
		},
	}
}

func seen(ctx context.Context, name string, memoryCap int) (got Seen, err error) {
	exit, err := contestant.Run(ctx, spec(RoleLate, StdJSON, LateJob{name, lateRequests}, memoryCap), &got)
	if err == nil && exit.Killed != "" {
		err = fmt.Errorf("%s was %s", name, exit.Killed)
	}
	return got, err
}

func (c Config) lateCell(name string) experiment.Cell {
	return experiment.Cell{Setup: late, Load: lateLoad, Pattern: name, Expect: time.Second, Run: func(ctx context.Context, _ experiment.Trial) (results.Run, error) {
		got, err := seen(ctx, name, c.MemoryCap)
		extra := map[string]float64{wrong.Key: float64(got.Wrong), panics.Key: float64(got.Panics)}
		return results.Run{Process: results.Process{ReuseRate: -1}, Extra: extra}, err
	}}
}

func demos() []experiment.Demo {
	const id, title = "use-after-return", "the goroutine that looks at its request's context after the handler has returned, as database/sql does with rows"
	return []experiment.Demo{{ID: id, Title: title, Expect: 4 * time.Second, Run: func(ctx context.Context) (results.Demo, error) {
		demo := results.Demo{ID: id, Title: title}
		for _, name := range []string{Pooled, Fresh, Spillway, GinTyped} {
			if name == Pooled && usage.Race {
				continue // the detector would stop the program at the fault
			}
			got, err := seen(ctx, name, 0)
			if err != nil {
				return demo, err
			}
			demo.Outcome += fmt.Sprintf("%s: %d of %d saw another request's value, %d panicked. ", name, got.Wrong, lateRequests, got.Panics)
			demo.Counts = append(demo.Counts,
				results.NamedCount{Name: "another request's value, " + name, N: float64(got.Wrong)},
				results.NamedCount{Name: "panics, " + name, N: float64(got.Panics)})
		}
		demo.Outcome += "All contexts but the pooled one belong to one request only; Spillway's routes pool what no handler sees."
		return demo, nil
	}}}
}
