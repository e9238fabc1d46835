// Package patterns is experiment H: a patient API under four concurrency
// patterns: in the published shape, with our patterns in its place (function calls
// in one process, refusals that wait), and for real (HTTP over SQLite, refused at once).
package patterns

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	service "github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/sqlite"
	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
)

// Experiment is experiment H.
type Experiment struct{ Config Config }

// ID implements experiment.Experiment.
func (Experiment) ID() string { return claims.H.ID }

// Title implements experiment.Experiment.
func (Experiment) Title() string { return claims.H.Title }

// The roles of its contestants.
const (
	roleCall      = "patterns-call"
	roleServer    = "patterns-server"
	roleAsPrinted = "patterns-as-printed"
	roleReuse     = "patterns-reuse"
	roleParked    = "patterns-parked"
	rolePublished = "patterns-published"
	roleUncleared = "patterns-uncleared"
)

// Roles are the roles of its contestants.
func Roles() map[string]contestant.Role {
	roles := map[string]contestant.Role{
		roleCall:      contestant.Func(call),
		roleServer:    server,
		roleAsPrinted: contestant.Func(asPrinted),
		roleReuse:     contestant.Func(reusing),
		roleParked:    contestant.Func(parked),
		rolePublished: contestant.Func(published),
		roleUncleared: contestant.Func(uncleared),
	}
	maps.Copy(roles, demonstrations.Roles())
	return roles
}

// Plan implements experiment.Experiment.
func (e Experiment) Plan() (experiment.Plan, error) {
	c, err := e.Config.check()
	if err != nil {
		return experiment.Plan{}, err
	}
	if err := enoughFiles(c); err != nil {
		return experiment.Plan{}, err
	}
	p := &planner{Config: c}
	for _, load := range []string{Low, High, Sustained} {
		for _, pattern := range c.Patterns {
			p.published(load, pattern)
			p.real(load, pattern)
		}
	}
	p.shape()
	p.brisk()
	if slices.Contains(c.Patterns, service.Optimized) {
		p.child(Published, Low, AsPrinted, roleAsPrinted).Beside = Published + Low
		p.child(Published, Reuse, Uncleared, roleUncleared)
		p.child(Published, Reuse, service.Optimized, roleReuse)
	}
	if slices.Contains(c.Patterns, service.Naive) {
		p.child(Published, Parked, service.Naive, roleParked)
	}
	return experiment.Plan{Scaled: c.scaled(), Prepare: p.prepare, Cells: p.cells, Demos: demonstrations.Demos()}, nil
}

// planner collects the cells.
type planner struct {
	Config
	cells    []experiment.Cell
	database string // set by prepare
}

// published adds a pattern as it was published. The pools under one load run
// side by side, each in its own process: they spend their time waiting for
// their stores and use two or three hundredths of a processor, which is in their
// figures, and one after the other they would take most of the session.
func (p *planner) published(load, pattern string) {
	c := p.child(Published, load, pattern, roleCall)
	if pattern != service.Naive {
		c.Beside = Published + load
	}
}

// child adds a contestant that loads itself.
func (p *planner) child(setup, load, pattern, role string) *experiment.Cell {
	l := p.load(load, setup, pattern)
	return p.add(setup, load, pattern, l, func(ctx context.Context, t experiment.Trial) (results.Run, error) {
		j := p.job(l, pattern, t)
		j.WarmUp = load == Brisk
		var run results.Run
		exit, err := contestant.Run(ctx, contestant.Spec{Role: role, Input: j, MemoryCap: p.MemoryCap}, &run)
		if exit.Killed != "" {
			run.Killed, run.Params = exit.Killed, j.params()
		}
		run.Process.PeakRSS = max(run.Process.PeakRSS, exit.PeakRSS)
		return run, err
	})
}

// real adds a pattern behind HTTP over SQLite, refusing at once.
func (p *planner) real(load, pattern string) *experiment.Cell {
	l := p.load(load, Real, pattern)
	return p.add(Real, load, pattern, l, func(ctx context.Context, t experiment.Trial) (results.Run, error) {
		j := p.job(l, pattern, t)
		j.QueueWait, j.Database = 0, p.database
		return serveAndLoad(ctx, j, p.MemoryCap)
	})
}

func (p *planner) add(setup, name, pattern string, l load, run func(context.Context, experiment.Trial) (results.Run, error)) *experiment.Cell {
	p.cells = append(p.cells, experiment.Cell{Setup: setup, Load: name, Pattern: pattern, Expect: p.expect(l, pattern) + 150*time.Millisecond, Run: run})
	return &p.cells[len(p.cells)-1]
}

// brisk adds what H10 compares: two pools at more than 1,000 requests a second,
// and a twin that shows how much two runs of the same pool differ.
func (p *planner) brisk() {
	if !slices.Contains(p.Patterns, service.WorkerPool) || !slices.Contains(p.Patterns, service.Optimized) {
		return
	}
	for _, pattern := range []string{service.WorkerPool, service.Optimized} {
		p.child(Published, Brisk, pattern, roleCall)
		p.real(Brisk, pattern)
	}
	p.child(Published, Brisk, service.WorkerPool, roleCall).Twin = true
	p.real(Brisk, service.WorkerPool).Twin = true
}

// prepare makes the database once, or finds that of an earlier session.
func (p *planner) prepare(ctx context.Context) error {
	set := job{Patients: p.Patients}.set()
	path, err := sqlite.DefaultPath(set)
	if err != nil {
		return fmt.Errorf("no place for the database: %w", err)
	}
	db, err := sqlite.OpenSet(ctx, path, set, sqlite.Options{}, nil)
	if err != nil {
		return fmt.Errorf("%w; it belongs in your cache folder, which XDG_CACHE_HOME or HOME chooses", err)
	}
	p.database = filepath.Clean(path)
	return db.Close()
}
