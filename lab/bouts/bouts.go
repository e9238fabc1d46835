// Package bouts declares comparisons: a table says which players meet under which loads and what
// is kept of them. The players of a table take turns in one process, which plays [turns.Role];
// where their instructions are counted, it plays [callgrind.Role].
package bouts

import (
	"context"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/callgrind"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
)

// Instructions is the figure of tables that are counted.
var Instructions = ledger.Extra("instructions", "instructions of a request")

// Table is players who are compared. A P tells the process who one of them is.
type Table[P any] struct {
	turns.Config                    // Counted does Least of a player's units of work in each round
	Label        string             // for the progress; empty: from the keys
	Spec         contestant.Spec    // of the process, but for its input
	Takes        time.Duration      // by a turn; 0: Time. Counted: by all turns of a player
	Figures      experiment.Figures // of a turn
	Net          string             // the last player, if its figures are subtracted from all others' under its load; empty: none
	Versus       string             // the figure by which Spillway is compared with each rival; empty: none

	keys    []ledger.Key
	players []P
}

// Add adds a player by its cell, twice if the cell has a twin.
func (t *Table[P]) Add(k ledger.Key, twin bool, p P) {
	for _, k := range k.AndTwin(twin) {
		t.keys, t.players = append(t.keys, k), append(t.players, p)
	}
}

// To adds the table to a plan.
func (t Table[P]) To(plan *experiment.Plan) {
	const start, between = 200 * time.Millisecond, 5 * time.Millisecond / 2 // turns, for a collection
	takes := max(t.Takes, t.Time) + between
	plan.Groups = append(plan.Groups, experiment.Group{
		// Finding out the size of a block takes two more.
		Keys: t.keys, Label: t.Label, Expect: start + time.Duration(len(t.keys)*(t.Rounds+2))*takes,
		Run: func(ctx context.Context, trial experiment.Trial) ([]results.Run, error) {
			runs, err := experiment.Play(ctx, t.keys, t.spec(trial), t.Figures)
			if err != nil {
				return nil, err
			}
			t.subtract(runs)
			experiment.Behind(t.rivals(), runs, t.Versus)
			return runs, nil
		},
	})
}

// Counted adds the table to a plan, with the instructions of each unit of work as its figure.
func (t Table[P]) Counted(plan *experiment.Plan) {
	plan.Groups = append(plan.Groups, experiment.Group{
		Keys: t.keys, Label: t.Label, Uses: .5, Expect: time.Second + time.Duration(len(t.keys))*t.Takes,
		Run: func(ctx context.Context, trial experiment.Trial) ([]results.Run, error) {
			counted, err := callgrind.Count(ctx, t.spec(trial), len(t.keys), t.Rounds, trial.Seed)
			if err != nil {
				return nil, err
			}
			runs := experiment.InTurns(t.keys, contestant.Exit{}, nil, nil)
			for i, all := range counted {
				for round := range all {
					all[round] /= float64(t.Least)
				}
				ledger.Keep(&runs[i], Instructions.Key, all)
			}
			t.subtract(runs)
			return runs, nil
		},
	})
}

func (t Table[P]) spec(trial experiment.Trial) contestant.Spec {
	t.Seed = trial.Seed
	spec := t.Spec
	spec.Input = turns.Game[P]{Config: t.Config, Players: t.players}
	return spec
}

// rivals are the players but for the one that only costs what is subtracted.
func (t Table[P]) rivals() []ledger.Key {
	return slices.DeleteFunc(slices.Clone(t.keys), func(k ledger.Key) bool { return k.Pattern == t.Net })
}

// subtract leaves of all figures what they are beyond those of the player Net in the same round.
func (t Table[P]) subtract(runs []results.Run) {
	for i, k := range t.keys {
		k.Twin = false
		own := slices.Index(t.keys, k.By(t.Net))
		if own < 0 || k.Pattern == t.Net {
			continue
		}
		for figure, costs := range runs[own].Blocks {
			all := slices.Clone(runs[i].Blocks[figure])
			for round := range all {
				all[round] -= costs[round]
			}
			ledger.Keep(&runs[i], figure, all)
		}
	}
}
