package main

import (
	"fmt"

	"github.com/spillway-go/spillway/load/judge"
)

type labSelftestCmd struct {
	Trials int    `default:"20000" help:"Synthetic experiments of each test. With fewer the limits are wider, because chance is."`
	Seed   uint64 `default:"1" help:"Of the planted noise."`
	JSON   bool   `name:"json" env:"SPILLWAY_LAB_JSON" help:"Print the counts as JSON on standard output."`
}

// Help teaches.
func (labSelftestCmd) Help() string {
	return `An instrument that always gives the wished-for answer measures nothing. Here the judge decides synthetic experiments of which the truth is known, with noise of four kinds: how often its interval contains the truth, how often a verdict is wrong at the bound of a rule, how often an effect of one to three deviations is found, what a disturbed repeat, a drift, repeats that follow each other, an instrument with a bias and several parts do, what the whole rule by which a session stops makes of figures at a bound, and whether as many more runs as it advises settle the question. It takes a minute.

Examples:
  spillway lab selftest
  spillway lab selftest --trials 1000    sooner, with wider limits`
}

func (c *labSelftestCmd) Run(env *environment) error {
	if c.Trials < 1 {
		return badInput(fmt.Errorf("trials is %d: want at least 1", c.Trials))
	}
	found := judge.Selftest(c.Trials, c.Seed, judge.Judge)
	if !c.JSON {
		fmt.Fprint(env.stdout, found)
	} else if err := writeJSON(env.stdout, map[string]judge.Report{"judge": found}); err != nil {
		return err
	}
	return found.Err()
}
