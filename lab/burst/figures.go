package burst

import (
	"math"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

var (
	finished  = counted("jobs finished", func(r *results.Run) float64 { return float64(r.Of("ok").Count) }) // none is a count, too
	rate      = counted("jobs a second", func(r *results.Run) float64 { return r.Rate("ok") })
	refused   = counted("share refused", func(r *results.Run) float64 { return 100 * r.Share("rejected") })
	refusal   = ledger.Quantile("rejected", 0.99, "p99 of a refusal")
	alone     = counted("time of a job alone", func(r *results.Run) float64 { return param(r, "work_ms") })
	allowed   = counted("workers and generators", func(r *results.Run) float64 { return param(r, "max_workers") + param(r, "generators") })
	workShare = ledger.Figure{Name: "work's share of the processor time", Key: "work_percent", OfKilled: true}
	sendShare = ledger.Figure{Name: "share of the processors that submissions took", Key: "submit_percent", OfKilled: true}

	killed = counted("whether it was killed", func(r *results.Run) float64 {
		if r.Killed != "" {
			return 100
		}
		return 0
	})
	latency = counted("mean latency", func(r *results.Run) float64 {
		if h := r.Of("ok").Latency; h.Count() > 0 {
			return h.Mean() / 1e6
		}
		return math.NaN()
	})
)

// counted is a figure from the counters that a contestant shares with the lab, so that
// one that was killed has it too.
func counted(name string, value func(*results.Run) float64) ledger.Figure {
	return ledger.Figure{Name: name, OfKilled: true, Value: func(r *results.Run) float64 {
		if r.Offered == 0 {
			return math.NaN()
		}
		return value(r)
	}}
}

// param is a parameter of a run, or NaN.
func param(r *results.Run, name string) float64 {
	if x, ok := r.Params[name].(float64); ok {
		return x
	}
	return math.NaN()
}
