// Package experiment runs the cells of an experiment in interleaved repeats and
// stores every run as soon as it ends, so that no measurement is lost later.
package experiment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/results"
)

// Experiment re-measures one family of claims.
type Experiment interface {
	ID() string    // as in the ledger: "H"
	Title() string // in one line

	// Plan says what will be run. The error is about the settings: bad input.
	Plan() (Plan, error)

	// Judge decides every claim from the raw runs, those of a partial session
	// too. The same runs and seed give the same verdicts.
	Judge(runs []results.Run, seed uint64) []results.Claim
}

// Plan is what one session runs: every cell once in each repeat, then every
// demonstration once.
type Plan struct {
	Scaled   string                          // how it differs from the published sizes; empty at full size
	Programs []contestant.Spec               // whose programs are built first, unless this process plays the roles
	Prepare  func(ctx context.Context) error // before anything is measured; may be nil
	Cells    []Cell
	Demos    []Demo
}

// Cell is one contestant under one load in one set-up.
type Cell struct {
	Setup, Load, Pattern string

	Twin   bool          // the second of an A/A pair
	Beside string        // cells of one non-empty name run at the same time, each in its own process
	Expect time.Duration // how long it should take, for the progress only

	// Run measures. It fills everything but the fields above, the repeat, the
	// order and the start. An error means that there is no measurement.
	Run func(ctx context.Context, t Trial) (results.Run, error)
}

// Trial is one run of a cell.
type Trial struct {
	Repeat int
	Seed   uint64 // the same for every cell of a repeat, so that they have the same random input
}

// Demo is a demonstration.
type Demo struct {
	ID, Title string
	Expect    time.Duration
	Run       func(ctx context.Context) (results.Demo, error)
}

// Label is a readable name of a cell.
func (c Cell) Label() string {
	s := fmt.Sprintf("%s · %s · %s", c.Setup, c.Load, c.Pattern)
	if c.Twin {
		s += " (twin)"
	}
	return s
}

// batches groups the cells that run at the same time. Every other cell is a batch
// of its own.
func batches(cells []Cell) [][]Cell {
	var out [][]Cell
	at := map[string]int{}
	for _, c := range cells {
		if i, ok := at[c.Beside]; ok && c.Beside != "" {
			out[i] = append(out[i], c)
			continue
		}
		at[c.Beside] = len(out)
		out = append(out, []Cell{c})
	}
	return out
}

// expect is how long a batch should take: as long as its longest cell.
func expect(batch []Cell) time.Duration {
	return slices.MaxFunc(batch, func(a, b Cell) int { return int(a.Expect - b.Expect) }).Expect
}

func label(batch []Cell) string {
	if len(batch) == 1 {
		return batch[0].Label()
	}
	if slices.ContainsFunc(batch, func(c Cell) bool { return c.Setup != batch[0].Setup || c.Load != batch[0].Load }) {
		return batch[0].Beside
	}
	names := make([]string, len(batch))
	for i, c := range batch {
		names[i] = c.Pattern
	}
	return fmt.Sprintf("%s · %s · %s side by side", batch[0].Setup, batch[0].Load, strings.Join(names, ", "))
}
