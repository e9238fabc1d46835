package experiment

import (
	"context"
	"runtime"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
)

// Alone measures in a process of its own, whose result is the figures of the run.
func Alone(spec contestant.Spec) func(context.Context, Trial) (results.Run, error) {
	return func(ctx context.Context, _ Trial) (results.Run, error) {
		run := results.Run{Process: results.Process{ReuseRate: -1}}
		exit, err := contestant.Run(ctx, spec, &run.Extra)
		run.Killed, run.Process.PeakRSS = exit.Killed, exit.PeakRSS
		return run, err
	}
}

// InTurns is the runs of cells whose contestants took turns in one process, with the
// figures of every block. A process that was killed has no readings.
func InTurns(keys []ledger.Key, exit contestant.Exit, readings [][]turns.Reading, figures map[string]func(turns.Reading) float64) []results.Run {
	runs := make([]results.Run, len(keys))
	for i := range runs {
		runs[i] = results.Run{Killed: exit.Killed, Process: results.Process{ReuseRate: -1}, Params: map[string]any{"gomaxprocs": runtime.GOMAXPROCS(0)}}
		for name, figure := range figures {
			if i < len(readings) {
				ledger.Keep(&runs[i], name, turns.Each(readings[i], figure))
			}
		}
	}
	return runs
}
