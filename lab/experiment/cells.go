package experiment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
)

// Chosen is the contestants that the user gave, or all of them if none was given.
func Chosen(given, all []string) ([]string, error) {
	if len(given) == 0 {
		return all, nil
	}
	return given, Known("contestant", given, all)
}

// Alone adds a cell that has a process of its own, whose result is the figures of the run.
func (p *Plan) Alone(k ledger.Key, expect time.Duration, spec contestant.Spec) {
	p.Cells = append(p.Cells, Cell{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Expect: expect, Run: Alone(spec)})
}

// Figures is what is kept of every turn.
type Figures = map[string]func(turns.Reading) float64

// Play is the runs of cells whose contestants take turns in one process, which returns
// their readings.
func Play(ctx context.Context, keys []ledger.Key, spec contestant.Spec, figures Figures) ([]results.Run, error) {
	var readings [][]turns.Reading
	exit, err := Together(ctx, spec, &readings)
	if err == nil && len(readings) != len(keys) {
		err = fmt.Errorf("the role %s returned the readings of %d players for %d cells", spec.Role, len(readings), len(keys))
	}
	return InTurns(keys, exit, readings, figures), err
}

// Together runs a process that all contestants share. That it is killed is no result of
// any of them: which one was the cause is unknown.
func Together(ctx context.Context, spec contestant.Spec, result any) (contestant.Exit, error) {
	exit, err := contestant.Run(ctx, spec, result)
	if err == nil && exit.Killed != "" {
		err = fmt.Errorf("the process of all contestants was %s", exit.Killed)
	}
	return exit, err
}

// Behind keeps with every rival how many times Spillway's figure is its own, in each round.
func Behind(keys []ledger.Key, runs []results.Run, figure string) {
	for i, k := range keys {
		us := slices.Index(keys, ledger.Key{Setup: k.Setup, Load: k.Load, Pattern: "spillway"})
		if us < 0 || strings.HasPrefix(k.Pattern, "spillway") {
			continue
		}
		if ratios := runs[us].Ratios(&runs[i], figure); len(ratios) > 0 {
			ledger.Keep(&runs[i], "behind", ratios)
		}
	}
}
