// Package patterns is experiment H: a patient API under four concurrency
// patterns, once as it was published (function calls in one process, refusals
// that wait) and once for real (HTTP over SQLite, refused at once).
package patterns

import (
	"context"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
)

// Experiment is experiment H.
type Classic struct{ Config Config }

// ID implements experiment.Experiment.
func (Classic) ID() string { return claims.H.ID }

// Title implements experiment.Experiment.
func (Classic) Title() string { return claims.H.Title }

// program plays every role that needs the patient API.
const program = "patient"

// The roles of its contestants. Each has a Job as its input.
const (
	RoleCall      = "patterns-call"
	RoleServer    = "patterns-server"
	RoleAsPrinted = "patterns-as-printed"
	RoleReuse     = "patterns-reuse"
	RoleDatabase  = "patterns-database" // of a number of patients: the path of its file
	roleParked    = "patterns-parked"
)

// Roles are the roles that need no patient API.
func Roles() map[string]contestant.Role {
	return map[string]contestant.Role{roleParked: contestant.Func(parked)}
}

// Demonstrations run faulty code and ours.
var Demonstrations = experiment.Staged{Role: "patterns-demo-", Program: program, Acts: []experiment.Act{
	{ID: "early-return", Title: "the handler that returns before its goroutine writes"},
	{ID: "shared-reply", Title: "the pooled response that is given back before it is encoded"},
	{ID: "late-retry-after", Title: "Retry-After set after the body"},
}}

// Plan implements experiment.Experiment.
func (e Classic) Plan() (experiment.Plan, error) {
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
	p.brisk()
	if slices.Contains(c.Patterns, Optimized) {
		p.child(Published, Low, AsPrinted, RoleAsPrinted).Beside = Published + Low
		p.child(Published, Reuse, Uncleared, RoleReuse)
		p.child(Published, Reuse, Optimized, RoleReuse)
	}
	if slices.Contains(c.Patterns, Naive) {
		p.child(Published, Parked, Naive, roleParked)
	}
	return experiment.Plan{
		Scaled: c.scaled(), Programs: []contestant.Spec{{Program: program, Role: RoleServer}}, Prepare: p.prepare,
		Cells: p.cells, Demos: Demonstrations.Demos(),
	}, nil
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
	c := p.child(Published, load, pattern, RoleCall)
	if pattern != Naive {
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
		exit, err := contestant.Run(ctx, contestant.Spec{Program: program, Role: role, Input: j, MemoryCap: p.MemoryCap}, &run)
		if exit.Killed != "" {
			run.Killed, run.Params = exit.Killed, j.Params()
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
	if !slices.Contains(p.Patterns, WorkerPool) || !slices.Contains(p.Patterns, Optimized) {
		return
	}
	for _, pattern := range []string{WorkerPool, Optimized} {
		p.child(Published, Brisk, pattern, RoleCall)
		p.real(Brisk, pattern)
	}
	p.child(Published, Brisk, WorkerPool, RoleCall).Twin = true
	p.real(Brisk, WorkerPool).Twin = true
}

// prepare makes the database once, or finds that of an earlier session.
func (p *planner) prepare(ctx context.Context) error {
	_, err := contestant.Run(ctx, contestant.Spec{Program: program, Role: RoleDatabase, Input: p.Patients}, &p.database)
	return err
}
