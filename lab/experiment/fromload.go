package experiment

import (
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
	"github.com/spillway-go/spillway/loadgen"
)

// FromLoad is what the load generator saw, as a run.
func FromLoad(res *loadgen.Result) results.Run {
	run := results.Run{Offered: res.Offered, Elapsed: res.Elapsed.Seconds(), Lag: &res.Lag}
	for _, o := range loadgen.Outcomes() {
		run.Outcomes = append(run.Outcomes, results.Outcome{
			Kind: o.String(), Count: res.Outcomes[o].Count, Latency: &res.Outcomes[o].Latency,
		})
	}
	for _, p := range res.Series {
		run.Series = append(run.Series, results.Point{
			At: p.At.Seconds(), OK: p.Outcomes[loadgen.OK], Rejected: p.Outcomes[loadgen.Rejected],
			Errors: p.Outcomes[loadgen.Error], Timeouts: p.Outcomes[loadgen.Timeout],
		})
	}
	return run
}

// Process is what a process used, as part of a run.
func Process(u usage.Usage) results.Process {
	return results.Process{
		Mallocs: u.Mallocs, AllocBytes: u.AllocBytes, PeakGoroutines: u.PeakGoroutines, PeakRSS: u.PeakRSS,
		CPUSeconds: u.CPUSeconds, GCShare: u.GCShare, GCPauseP99: u.GCPauseP99, ReuseRate: -1,
	}
}
