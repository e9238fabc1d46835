// Package experiment runs experiments: the cells of each in interleaved repeats. Every
// run is stored as soon as it ends, so that no measurement is lost later.
//
// An experiment is one declaration; see [Declare]. The command, its flags and help, the
// tables of the report and the list of experiments are made from it. Its plan (plan.go) says
// what is run; how cells usually are (cells.go) is here, too.
//
// A session (session.go) is one execution of experiments (part.go): their steps (steps.go), in an
// order that lets what only waits run side by side (schedule.go), and the verdicts, which may be
// looked at more than once (looks.go). With a budget (budget.go) a session runs first what the
// published claims rest on, then what settles open claims (wants.go), then the goals.
package experiment

import (
	"path/filepath"
	"runtime"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/ledger"
)

// Experiment re-measures one family of claims. [Declare] makes it.
type Experiment struct {
	ledger.Family
	Folder string                     // of the lab
	Help   string                     // what is measured and how, for --help: paragraphs of whole sentences
	Roles  map[string]contestant.Role // of the contestants that this program plays itself
	Flags  func() any                 // a new configuration for the command line to fill: a pointer to a struct

	plan func(any) (Plan, error)
}

// Declare joins what an experiment is: its claims, its configuration C, whose fields are
// its flags, and the plan that a configuration makes. The tags of a field are those of
// the command line (help, default, placeholder, …), quick and full for its values in runs
// of these sizes, whole for those in a session of several experiments, and least, most and
// above for its limits. The plan's error is about the settings: bad input. Planning starts
// nothing.
func Declare[C any](family ledger.Family, help string, plan func(C) (Plan, error), roles map[string]contestant.Role) *Experiment {
	_, file, _, _ := runtime.Caller(1)
	return &Experiment{
		Family: family, Folder: filepath.Base(filepath.Dir(file)), Help: help, Roles: roles,
		Flags: func() any { return new(C) },
		plan: func(c any) (Plan, error) {
			if err := check(c); err != nil {
				return Plan{}, err
			}
			return plan(*c.(*C))
		},
	}
}
