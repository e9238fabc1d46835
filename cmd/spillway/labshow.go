package main

import (
	"os"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/report"
	"github.com/spillway-go/spillway/lab/results"
)

// options are how the results in a folder are shown.
func options(env *environment, dir string) report.Options {
	opts := report.Options{Width: 100}
	if f, ok := env.stdout.(*sink).Writer.(*os.File); ok {
		opts = report.For(f)
	}
	opts.Dir = dir
	return opts
}

// showOne prints the results of one experiment.
func showOne(env *environment, dir string, p experiment.Part, asJSON bool) error {
	if asJSON {
		return writeJSON(env.stdout, p.Results)
	}
	return report.Terminal(env.stdout, p.Family, p.Results, p.Runs, options(env, dir))
}

// showSession prints what came of several experiments, and writes their common page.
func showSession(env *environment, dir string, s results.Session, parts []experiment.Part, asJSON bool) error {
	runs := map[string][]results.Run{}
	for _, p := range parts {
		runs[p.ID] = p.Runs
	}
	var families []ledger.Family
	for _, e := range experiments {
		families = append(families, e.Family)
	}
	if len(runs) > 0 {
		if err := report.WriteSession(dir, families, s, runs); err != nil {
			return err
		}
	}
	if asJSON {
		return writeJSON(env.stdout, s)
	}
	return report.TerminalSession(env.stdout, families, s, runs, options(env, dir))
}
