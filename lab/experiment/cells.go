package experiment

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
	"github.com/spillway-go/spillway/load/loadgen"
	"github.com/spillway-go/spillway/load/usage"
)

// GoodSince is the rate of good answers a second from that moment of a load to its end.
func GoodSince(res *loadgen.Result, from time.Duration) float64 {
	var good uint64
	for _, p := range res.Series {
		if p.At > from {
			good += p.Outcomes[loadgen.OK]
		}
	}
	return float64(good) / (res.Elapsed - from).Seconds()
}

// FromLoad is what the load generator saw, as a run.
func FromLoad(res *loadgen.Result) results.Run {
	run := results.Run{Offered: res.Offered, Elapsed: res.Elapsed.Seconds(), Lag: &res.Lag}
	for _, o := range loadgen.Outcomes() {
		of := &res.Outcomes[o]
		run.Outcomes = append(run.Outcomes, results.Outcome{Kind: o.String(), Count: of.Count, Latency: &of.Latency})
	}
	for _, p := range res.Series {
		run.Series = append(run.Series, results.Point{
			At: p.At.Seconds(), OK: p.Outcomes[loadgen.OK], Rejected: p.Outcomes[loadgen.Rejected],
			Errors: p.Outcomes[loadgen.Error], Timeouts: p.Outcomes[loadgen.Timeout],
		})
	}
	return run
}

// Process is what a process without a pool used, as part of a run.
func Process(u usage.Usage) results.Process { return results.Process{Usage: u, ReuseRate: -1} }

// Alone measures in a process of its own, whose result is the figures of the run.
func Alone(spec contestant.Spec) func(context.Context, Trial) (results.Run, error) {
	return func(ctx context.Context, _ Trial) (results.Run, error) {
		run := results.Run{Process: results.Process{ReuseRate: -1}}
		exit, err := contestant.Run(ctx, spec, &run.Extra)
		run.Killed, run.Process.PeakRSS = exit.Killed, exit.PeakRSS
		return run, err
	}
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
