package experiment

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
	"github.com/spillway-go/spillway/lab/usage"
	"github.com/spillway-go/spillway/loadgen"
)

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

// inShort is a run in a few words.
func inShort(run results.Run) string {
	switch ok := run.Of("ok"); {
	case run.Failed != "":
		return "failed: " + results.Gist(run.Failed)
	case run.Killed != "":
		return run.Killed
	case run.Offered == 0:
		return ""
	case ok.Count > 0 && ok.Latency.Count() == 0: // units of work that were not timed individually
		return fmt.Sprintf("%.0f a second", run.Rate("ok"))
	default:
		return fmt.Sprintf("%.0f ok/s, %.0f refused/s, p99 %v", run.Rate("ok"), run.Rate("rejected"),
			time.Duration(ok.Latency.Quantile(0.99)).Round(time.Millisecond))
	}
}
