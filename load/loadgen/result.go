package loadgen

import (
	"fmt"
	"time"

	"github.com/spillway-go/spillway/histogram"
)

// Result holds the measurements of one Run. Every request that was sent is in exactly one outcome
// or was Aborted: Offered is the sum of them all.
type Result struct {
	Offered  uint64                  // requests sent
	Aborted  uint64                  // sent requests that the end of ctx cut off
	Waited   uint64                  // sent requests that were late because MaxInFlight was reached
	Elapsed  time.Duration           // until the last answer, and at least the length of an open loop's schedule
	Outcomes [outcomes]OutcomeResult // by Outcome

	// Lag is how long after its intended start each request was sent, in
	// nanoseconds: the generator's own share of every latency. All zeros in a
	// closed loop, whose intended start is the sending.
	Lag histogram.Histogram

	// GeneratorBound reports that the generator, not the target, shaped the latencies of an open
	// loop. It is set when a request had to wait because MaxInFlight was reached, or when the p99
	// of Lag is above a tenth of the p99 of all latencies. In both loops it is set if the result is
	// void ([Result.Void]).
	GeneratorBound bool
	// Why gives the reason for GeneratorBound, in one sentence.
	Why string

	Causes []Cause // what the outcomes of an HTTP target came from: at most 54 rows
	Phases []Phase // of the requests of an HTTP target; without those that no request had

	Classes []ClassResult // for a target with classes, such as Mix

	Series  []Point // one step per Config.Interval, without gaps
	Partial bool    // ctx ended before everything was sent and answered
}

// OutcomeResult is one outcome's share. Latency is in nanoseconds, from the
// intended start in an open loop, from the sending in a closed one.
type OutcomeResult struct {
	Count   uint64
	Latency histogram.Histogram
}

// ClassResult is the share of a class of requests in the outcomes.
type ClassResult struct {
	Name     string
	Outcomes [outcomes]OutcomeResult
}

// Point counts what happened in one step of a run's time line.
type Point struct {
	At       time.Duration // the start of the step
	Sent     uint64        // requests sent in the step
	Outcomes [outcomes]uint64
}

// Snapshot is the progress of a run.
type Snapshot struct {
	Elapsed  time.Duration
	Sent     uint64
	InFlight uint64
	Outcomes [outcomes]uint64

	// Latency holds the latencies of the ok answers since the previous snapshot. Lag holds the lags
	// of the requests that ended since the previous snapshot.
	Latency, Lag histogram.Histogram
}

// Goodput returns the requests answered successfully per second.
func (r *Result) Goodput() float64 { return perSecond(r.Outcomes[OK].Count, r.Elapsed) }

func perSecond(n uint64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// Share returns the share of o in all outcomes, from 0 to 1; 0 without any outcome.
func (r *Result) Share(o Outcome) float64 {
	if r.Offered == r.Aborted {
		return 0
	}
	return share(&r.Outcomes, o)
}

// share returns the share of o in all outcomes; NaN without any outcome.
func share(parts *[outcomes]OutcomeResult, o Outcome) float64 {
	all := uint64(0)
	for i := range parts {
		all += parts[i].Count
	}
	return float64(parts[o].Count) / float64(all)
}

// judge decides whether the generator was the bottleneck.
func (r *Result) judge() {
	if r.judgeVoid() {
		return
	}
	if r.Waited > 0 {
		r.GeneratorBound = true
		r.Why = fmt.Sprintf("%d of %d requests were sent late because as many were in flight as MaxInFlight allows: the target saw less load than the schedule asked for.",
			r.Waited, r.Offered)
		return
	}
	var all histogram.Histogram
	for o := range r.Outcomes {
		all.Merge(&r.Outcomes[o].Latency)
	}
	lag, latency := r.Lag.Quantile(0.99), all.Quantile(0.99)
	if lag > latency/10 {
		r.GeneratorBound = true
		r.Why = fmt.Sprintf("Requests were sent late: the p99 of the send lag is %v, more than a tenth of the p99 latency of %v; lower the rate or give the generator more CPU.",
			round(time.Duration(lag)), round(time.Duration(latency)))
	}
}

// judgeVoid decides whether the generator's machine ran out of something.
func (r *Result) judgeVoid() bool {
	why := r.Void()
	if why != "" {
		r.GeneratorBound, r.Why = true, why
	}
	return why != ""
}

// round rounds d to the three or four digits that a histogram keeps.
func round(d time.Duration) time.Duration {
	for unit := time.Second; unit > 1; unit /= 1000 {
		if d >= unit {
			return d.Round(unit / 1000)
		}
	}
	return d
}
