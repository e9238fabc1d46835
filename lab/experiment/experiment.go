// Package experiment runs experiments: the cells of each in interleaved repeats. Every
// run is stored as soon as it ends, so that no measurement is lost later.
//
// An experiment is one declaration; see [Declare]. The command, its flags and help, the
// tables of the report and the list of experiments are made from it.
package experiment

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
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

// Plan is what one session runs: every group once in each repeat, then every
// demonstration once.
type Plan struct {
	Programs []contestant.Spec               // whose programs are built first, unless this process plays the roles
	Prepare  func(ctx context.Context) error // before anything is measured; may be nil
	Cells    []Cell
	Groups   []Group
	Demos    []Demo
}

// Group is cells that are measured together, for instance in turns.
type Group struct {
	Keys   []ledger.Key
	Label  string        // for the progress; empty: from the keys
	Beside string        // groups of one non-empty name run at the same time
	Uses   float64       // the share of the processors that it uses, if other experiments may run beside it; 0: it runs alone
	Expect time.Duration // how long it should take

	// Run measures: one run for each key, in that order. It fills everything but the
	// cell's name, the repeat, the order and the start. An error means that there is no
	// measurement.
	Run func(ctx context.Context, t Trial) ([]results.Run, error)
}

// Cell is a group of one.
type Cell struct {
	Setup, Load, Pattern string

	Twin   bool          // the second of an A/A pair
	Beside string        // as of Group
	Uses   float64       // as of Group
	Expect time.Duration // as of Group

	Run func(ctx context.Context, t Trial) (results.Run, error) // as of Group
}

// Trial is one run of a group.
type Trial struct {
	Repeat int
	Seed   uint64 // the same for every group of a repeat, so that they have the same random input
}

// Demo is a demonstration.
type Demo struct {
	ID, Title string
	Expect    time.Duration
	Run       func(ctx context.Context) (results.Demo, error)
}

// Key names the cell.
func (c Cell) Key() ledger.Key {
	return ledger.Key{Setup: c.Setup, Load: c.Load, Pattern: c.Pattern, Twin: c.Twin}
}

func (c Cell) group() Group {
	return Group{Keys: []ledger.Key{c.Key()}, Beside: c.Beside, Uses: c.Uses, Expect: c.Expect,
		Run: func(ctx context.Context, t Trial) ([]results.Run, error) {
			run, err := c.Run(ctx, t)
			return []results.Run{run}, err
		}}
}

// Keys returns every cell of the plan.
func (p Plan) Keys() (out []ledger.Key) {
	for _, g := range p.groups() {
		out = append(out, g.Keys...)
	}
	return out
}

// Expect is how long so many repeats should take, with the demonstrations.
func (p Plan) Expect(repeats int) (sum time.Duration) {
	for _, b := range p.batches() {
		sum += time.Duration(repeats) * b.expect(nil)
	}
	for _, d := range p.Demos {
		sum += d.Expect
	}
	return sum
}

func (p Plan) groups() []Group {
	out := slices.Clone(p.Groups)
	for _, c := range p.Cells {
		out = append(out, c.group())
	}
	return out
}

// batch is the groups that run at the same time.
type batch []Group

// batches joins the groups that run at the same time. Every other group is a batch of
// its own.
func (p Plan) batches() (out []batch) {
	at := map[string]int{}
	for _, g := range p.groups() {
		if i, ok := at[g.Beside]; ok && g.Beside != "" {
			out[i] = append(out[i], g)
			continue
		}
		at[g.Beside] = len(out)
		out = append(out, batch{g})
	}
	return out
}

// expect is as long as the longest group should take: the time that it took last, or
// what was planned.
func (b batch) expect(took map[ledger.Key]time.Duration) (longest time.Duration) {
	for _, g := range b {
		expect := g.Expect
		for _, k := range g.Keys {
			if last, measured := took[k]; measured {
				expect = last
			}
		}
		longest = max(longest, expect)
	}
	return longest
}

// uses is the share of the processors that the batch needs: all of them, unless every group
// says otherwise.
func (b batch) uses() (sum float64) {
	for _, g := range b {
		if g.Uses <= 0 {
			return 1
		}
		sum += g.Uses
	}
	return min(sum, 1)
}

func (b batch) label() string {
	if len(b) > 1 && b[0].Label == "" {
		return b[0].Beside
	}
	return b[0].label()
}

// label names what the keys have in common, and their contestants.
func (g Group) label() string {
	if g.Label != "" {
		return g.Label
	}
	first := g.Keys[0]
	if len(g.Keys) == 1 {
		return first.String()
	}
	var names []string
	for _, k := range g.Keys {
		if !slices.Contains(names, k.Pattern) {
			names = append(names, k.Pattern)
		}
	}
	if len(names) > 4 {
		names = append(names[:3], fmt.Sprintf("%d others", len(names)-3))
	}
	return fmt.Sprintf("%s · %s · %s in turns", first.Setup, first.Load, strings.Join(names, ", "))
}
