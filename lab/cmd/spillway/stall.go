package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spillway-go/spillway/loadgen"
)

// A target that answers at once but stalls for one second in every ten, under an
// open loop. The waiting times can be computed: the requests of a stall arrive
// evenly and each waits for its end, so of every 10,000 requests 1,000 wait from 0
// to 1 s, and the share q of all has waited at most 1 s × (1 − 10 (1−q)). A
// generator whose clock starts at the sending, or that waits for the target, shows
// almost none of it.
//
// The target is a function: over HTTP on a small machine, answering the thousand
// requests of a stall would take long enough to change the figures.
const (
	stallRate   = 1000.0
	stallEvery  = 10 * time.Second
	stallLasts  = time.Second
	stallTime   = 30 * time.Second
	stallWithin = 0.02 // of the truth
)

type stallReport struct {
	Seconds  float64         `json:"seconds"`
	Offered  uint64          `json:"offered"`
	Trusted  bool            `json:"trusted"` // the generator kept its schedule
	Why      string          `json:"why,omitempty"`
	Quantile []stallQuantile `json:"quantiles"`
}

type stallQuantile struct {
	Quantile float64 `json:"quantile"`
	Measured float64 `json:"measured_ms"`
	Truth    float64 `json:"truth_ms"`
}

// measureStalls runs it in real time.
func measureStalls(env *environment) (stallReport, error) {
	start := time.Now()
	target := loadgen.TargetFunc(func(context.Context, uint64) loadgen.Outcome {
		if phase := time.Since(start) % stallEvery; phase >= stallEvery-stallLasts {
			time.Sleep(stallEvery - phase)
		}
		return loadgen.OK
	})
	res, err := loadgen.Run(env.ctx, loadgen.Config{
		Target: target, Open: loadgen.Constant(stallRate, stallTime), MaxInFlight: 2000, Interval: time.Second,
		Progress: func(s loadgen.Snapshot) {
			if env.liveStderr {
				fmt.Fprintf(env.stderr, "\r\x1b[Kstalling target: %v of %v, %d in flight", s.Elapsed.Round(time.Second), stallTime, s.InFlight)
			}
		},
	})
	if err != nil {
		return stallReport{}, err
	}
	if env.liveStderr {
		fmt.Fprint(env.stderr, "\r\x1b[K")
	}
	if res.Partial {
		return stallReport{}, errInterrupted
	}
	report := stallReport{Seconds: res.Elapsed.Seconds(), Offered: res.Offered, Trusted: !res.GeneratorBound, Why: res.Why}
	for _, q := range []float64{0.99, 0.999} {
		report.Quantile = append(report.Quantile, stallQuantile{
			Quantile: q, Measured: float64(res.Outcomes[loadgen.OK].Latency.Quantile(q)) / 1e6, Truth: stallTruth(q),
		})
	}
	return report, nil
}

// stallTruth is the latency in milliseconds below which the share q lies.
func stallTruth(q float64) float64 {
	stalled := float64(stallLasts) / float64(stallEvery)
	waits := 1 - (1-q)/stalled // share of the stall's requests below
	return math.Max(0, waits) * float64(stallLasts) / 1e6
}

// Err says which quantile is off.
func (r stallReport) Err() error {
	var errs []error
	if !r.Trusted {
		errs = append(errs, fmt.Errorf("the generator could not keep its schedule: %s", r.Why))
	}
	for _, q := range r.Quantile {
		if off := q.Measured/q.Truth - 1; math.Abs(off) > stallWithin {
			errs = append(errs, fmt.Errorf("p%g is %.1f ms, the truth %.1f ms: off by %.1f %%", 100*q.Quantile, q.Measured, q.Truth, 100*off))
		}
	}
	return errors.Join(errs...)
}

func (r stallReport) String() string {
	s := fmt.Sprintf("open loop at %.0f/s for %.0f s against a target that stalls %v in every %v\n", stallRate, r.Seconds, stallLasts, stallEvery)
	for _, q := range r.Quantile {
		s += fmt.Sprintf("p%-5g measured %7.1f ms, truth %7.1f ms, off by %+.2f %%\n", 100*q.Quantile, q.Measured, q.Truth, 100*(q.Measured/q.Truth-1))
	}
	return s
}
