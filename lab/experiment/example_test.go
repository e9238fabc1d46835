package experiment_test

import (
	"context"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

// Everything that an experiment with one claim needs: what is asked, what can be set,
// and what is run.
func ExampleDeclare() {
	type config struct {
		Size int           `default:"1000" quick:"10" help:"How many bytes are copied."`
		Time time.Duration `default:"100ms" quick:"1ms" help:"How long each measurement is."`
	}
	perByte := ledger.Extra("ns", "time for a byte")
	cell := func(pattern string) ledger.Key {
		return ledger.Key{Setup: "in memory", Load: "one caller", Pattern: pattern}
	}
	copying := experiment.Declare(
		ledger.Family{
			ID: "copy", Title: "Whether copy beats a loop",
			Claims: []ledger.Claim{{
				ID: "copy-1", Title: "copy takes at most half the time of a loop", Goal: true,
				Parts: []ledger.Part{{
					Subject: "copy/loop time", Unit: "x", Rule: judge.AtMost(0.5), Spread: 0.03,
					Cases: ledger.Only(ledger.Case{Setup: "in memory", Value: ledger.Of(cell("copy"), perByte).Over(ledger.Of(cell("loop"), perByte))}),
				}},
			}},
		},
		"Bytes are copied by the built-in function and by a loop.",
		func(c config) (experiment.Plan, error) {
			if c.Size < 1 {
				return experiment.Plan{}, fmt.Errorf("size is %d: want at least 1", c.Size)
			}
			measure := func(context.Context, experiment.Trial) ([]results.Run, error) {
				return []results.Run{{Extra: map[string]float64{"ns": 0.1}}, {Extra: map[string]float64{"ns": 0.5}}}, nil // made up here
			}
			return experiment.Plan{Groups: []experiment.Group{{
				Keys: []ledger.Key{cell("copy"), cell("loop")}, Expect: 2 * c.Time, Run: measure,
			}}}, nil
		}, nil)

	var runs []results.Run // as a session makes them
	for repeat := range judge.MinRepeats {
		for pattern, ns := range map[string]float64{"copy": 0.1, "loop": 0.5} {
			runs = append(runs, results.Run{Setup: "in memory", Load: "one caller", Pattern: pattern, Repeat: repeat, Elapsed: 1, Extra: map[string]float64{"ns": ns}})
		}
	}
	for _, c := range copying.Judge(runs, results.Results{Seed: 1}) {
		fmt.Println(c.ID, c.Verdict)
	}
	fmt.Println(copying.Config("quick"))
	// Output:
	// copy-1 holds
	// &{10 1ms}
}
