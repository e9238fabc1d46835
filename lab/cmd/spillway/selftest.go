package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spillway-go/spillway/load/judge"
	"github.com/spillway-go/spillway/loadgen"
)

type labSelftestCmd struct {
	Trials int    `default:"20000" help:"Synthetic experiments of each test. With fewer the limits are wider, because chance is."`
	Seed   uint64 `default:"1" help:"Of the planted noise."`
	Real   bool   `help:"Also test the load generator in real time, for half a minute: open loop at 1,000/s against a target that stalls 1 s in every 10 s, p99 and p99.9 beside the computed truth."`
	JSON   bool   `name:"json" env:"SPILLWAY_LAB_JSON" help:"Print the counts as JSON on standard output."`
}

// Help teaches.
func (labSelftestCmd) Help() string {
	return `An instrument that always gives the wished-for answer measures nothing. Here the judge decides synthetic experiments of which the truth is known, with noise of four kinds: how often its interval contains the truth, how often a verdict is wrong at the bound of a rule, how often an effect of one to three deviations is found, what a disturbed repeat, a drift, repeats that follow each other, an instrument with a bias and several parts do, and whether as many more runs as it advises settle the question. It takes a minute.

Examples:
  spillway lab selftest
  spillway lab selftest --real    and the load generator, in real time`
}

func (c *labSelftestCmd) Run(env *environment) error {
	if c.Trials < 1 {
		return badInput(fmt.Errorf("trials is %d: want at least 1", c.Trials))
	}
	out := struct {
		Judge judge.Report `json:"judge"`
		Stall *stallReport `json:"stall,omitempty"`
	}{Judge: judge.Selftest(c.Trials, c.Seed, judge.Judge)}
	failed := out.Judge.Err()
	if !c.JSON {
		fmt.Fprint(env.stdout, out.Judge)
	}
	if c.Real {
		stall, err := measureStalls(env)
		if err != nil {
			return err
		}
		out.Stall, failed = stall, errors.Join(failed, stall.Err())
		if !c.JSON {
			fmt.Fprint(env.stdout, "\n", stall)
		}
	}
	if c.JSON {
		if err := writeJSON(env.stdout, out); err != nil {
			return err
		}
	}
	return failed
}

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

// off is by how much the measured figure differs from the truth, as a share of it.
func (q stallQuantile) off() float64 { return q.Measured/q.Truth - 1 }

// measureStalls runs it in real time.
func measureStalls(env *environment) (*stallReport, error) {
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
			env.status(fmt.Sprintf("stalling target: %v of %v, %d in flight", s.Elapsed.Round(time.Second), stallTime, s.InFlight))
		},
	})
	if err != nil {
		return nil, err
	}
	env.status("")
	if res.Partial {
		return nil, errInterrupted
	}
	report := &stallReport{Seconds: res.Elapsed.Seconds(), Offered: res.Offered, Trusted: !res.GeneratorBound, Why: res.Why}
	for _, q := range []float64{0.99, 0.999} {
		measured := float64(res.Outcomes[loadgen.OK].Latency.Quantile(q)) / 1e6
		report.Quantile = append(report.Quantile, stallQuantile{q, measured, stallTruth(q)})
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
func (r *stallReport) Err() error {
	var errs []error
	if !r.Trusted {
		errs = append(errs, fmt.Errorf("the generator could not keep its schedule: %s", r.Why))
	}
	for _, q := range r.Quantile {
		if math.Abs(q.off()) > stallWithin {
			errs = append(errs, fmt.Errorf("p%g is %.1f ms, the truth %.1f ms: off by %.1f %%", 100*q.Quantile, q.Measured, q.Truth, 100*q.off()))
		}
	}
	return errors.Join(errs...)
}

func (r *stallReport) String() string {
	s := fmt.Sprintf("open loop at %.0f/s for %.0f s against a target that stalls %v in every %v\n", stallRate, r.Seconds, stallLasts, stallEvery)
	for _, q := range r.Quantile {
		s += fmt.Sprintf("p%-5g measured %7.1f ms, truth %7.1f ms, off by %+.2f %%\n", 100*q.Quantile, q.Measured, q.Truth, 100*q.off())
	}
	return s
}
