package main

import (
	"io"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/db"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/results"
)

// This process plays the roles of the program.
func TestMain(m *testing.M) { labtest.Main(m, roles) }

func TestNoAnswerIsWithoutARecord(t *testing.T) {
	for _, r := range shortRuns(t, 100*time.Millisecond) {
		lost, counted := r.Extra["unrecorded"]
		if audits := r.Pattern != db.Unaudited; audits != counted || lost != 0 {
			t.Errorf("%s: %v", r.Pattern, r.Extra)
		}
	}
}

// shortRuns are short runs of all contestants, undisturbed.
func shortRuns(t *testing.T, timed time.Duration) []results.Run {
	t.Helper()
	c := experiment.Sized[db.Config]("quick")
	c.Database, c.Part = []string{db.SQLite}, []string{"audit"}
	c.AuditClients, c.AuditWarmUp, c.AuditTime = []int{8}, 100*time.Millisecond, timed
	s := experiment.Session{Dir: t.TempDir() + "/out", Repeats: 1, Seed: 5, Progress: experiment.NewProgress(io.Discard, false, 0),
		Watch: func() func() float64 { return func() float64 { return 0 } }}
	res, runs, err := s.Run(t.Context(), db.Experiment, &c)
	if err != nil || res.Partial != "" || len(runs) != 4 {
		t.Fatalf("%d runs, %v, partial %q", len(runs), err, res.Partial)
	}
	return runs
}
