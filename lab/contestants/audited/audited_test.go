package main

import (
	"io"
	"testing"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/results"
)

// This process plays the roles of the program.
func TestMain(m *testing.M) { labtest.Main(m, roles) }

func TestNoAnswerIsWithoutARecord(t *testing.T) {
	for _, r := range shortRuns(t, .05) {
		lost, counted := r.Extra["unrecorded"]
		if audits := r.Pattern != overload.Unaudited; audits != counted || lost != 0 {
			t.Errorf("%s: %v", r.Pattern, r.Extra)
		}
	}
}

// shortRuns are short runs of all contestants, undisturbed.
func shortRuns(t *testing.T, pace float64) []results.Run {
	t.Helper()
	c := experiment.Sized[overload.Config]("quick")
	c.Scene = []string{"sqlite-audit"}
	c.Pace = pace
	s := experiment.Session{Dir: t.TempDir() + "/out", Repeats: 1, Seed: 5, Progress: experiment.NewProgress(io.Discard, false, 0),
		Watch: func() func() float64 { return func() float64 { return 0 } }}
	res, runs, err := s.Run(t.Context(), overload.Databases, &c)
	if err != nil || res.Partial != "" || len(runs) != 10 {
		t.Fatalf("%d runs, %v, partial %q", len(runs), err, res.Partial)
	}
	return runs
}
