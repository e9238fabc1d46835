package experiment

import (
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
)

// InTurns is the runs of cells whose contestants took turns in one process, with the
// figures of every block. A process that was killed has no readings.
func InTurns(keys []ledger.Key, exit contestant.Exit, readings [][]turns.Reading, figures map[string]func(turns.Reading) float64) []results.Run {
	runs := make([]results.Run, len(keys))
	for i := range runs {
		runs[i] = results.Run{Killed: exit.Killed, Process: results.Process{ReuseRate: -1}}
		for name, figure := range figures {
			if i < len(readings) {
				ledger.Keep(&runs[i], name, turns.Each(readings[i], figure))
			}
		}
	}
	return runs
}
