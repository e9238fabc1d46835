// Package labtest holds helpers for the tests of experiments.
package labtest

import (
	"io"
	"os"
	"testing"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
)

// Main is the TestMain of a package that starts contestants: the test binary runs
// their roles.
func Main(m *testing.M, roles map[string]contestant.Role) {
	if code, ok := contestant.Main(roles); ok {
		os.Exit(code)
	}
	// The race detector makes every process sleep a second at its end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// Planned is a run of each cell of a plan, without figures.
func Planned(p experiment.Plan, err error) (runs []results.Run) {
	if err != nil {
		panic(err)
	}
	for _, k := range p.Keys() {
		runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Elapsed: 1})
	}
	return runs
}

// Session is a session of one repeat, undisturbed, which has to be whole.
func Session(t *testing.T, e *experiment.Experiment, config any) (results.Results, []results.Run) {
	t.Helper()
	s := experiment.Session{Dir: t.TempDir() + "/out", Repeats: 1, Seed: 5, Progress: experiment.NewProgress(io.Discard, false, 0),
		Watch: func() func() float64 { return func() float64 { return 0 } }}
	res, runs, err := s.Run(t.Context(), e, config)
	if err != nil || res.Partial != "" {
		t.Fatalf("%v, partial %q", err, res.Partial)
	}
	return res, runs
}

// Answered fails the test unless every claim has answers, whose figures are missing only where may says so.
func Answered(t *testing.T, res results.Results, may func(c results.Claim, a results.Answer) bool) {
	t.Helper()
	for _, c := range res.Claims {
		if len(c.Answers) == 0 {
			t.Errorf("%s has no answer", c.ID)
		}
		for _, a := range c.Answers {
			if a.Missing && !may(c, a) {
				t.Errorf("%s/%s (%s): %s", c.ID, a.Part, a.Setup, a.Why)
			}
		}
	}
}
