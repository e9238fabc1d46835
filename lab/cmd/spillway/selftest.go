package main

import (
	"errors"
	"fmt"

	"github.com/spillway-go/spillway/lab/judge"
)

type labSelftestCmd struct {
	Trials int    `env:"SPILLWAY_LAB_SELFTEST_TRIALS" default:"20000" help:"Synthetic experiments of each test. With fewer the limits are wider, because chance is."`
	Seed   uint64 `env:"SPILLWAY_LAB_SELFTEST_SEED" default:"1" help:"Of the planted noise."`
	Real   bool   `env:"SPILLWAY_LAB_SELFTEST_REAL" help:"Also test the load generator in real time, for half a minute: open loop at 1,000/s against a target that stalls 1 s in every 10 s, p99 and p99.9 beside the computed truth."`
	JSON   bool   `name:"json" env:"SPILLWAY_LAB_JSON" help:"Print the counts as JSON on standard output."`
}

// Help teaches.
func (labSelftestCmd) Help() string {
	return `An instrument that always gives the wished-for answer measures nothing. Here the judge decides synthetic experiments of which the truth is known, with noise of four kinds: how often its interval contains the truth, how often a verdict is wrong at the bound of a rule, whether it claims effects that are not there and finds those that are, and whether as many more runs as it advises settle the question. It takes some seconds.

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
		out.Stall = &stall
		failed = errors.Join(failed, stall.Err())
		if !c.JSON {
			fmt.Fprint(env.stdout, "\n", stall)
		}
	}
	if c.JSON {
		if err := writeJSON(env.stdout, out); err != nil {
			return err
		}
	}
	if failed != nil {
		return failure{failed}
	}
	return nil
}
