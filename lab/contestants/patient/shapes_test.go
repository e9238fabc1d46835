package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/callgrind"
	"github.com/spillway-go/spillway/lab/experiment"
	plan "github.com/spillway-go/spillway/lab/shapes"
)

func TestASmallSessionOfShapesAnswersEveryClaim(t *testing.T) {
	t.Setenv("PATH", "") // without Valgrind, which cannot count in a test binary
	c := experiment.Sized[plan.Config]("quick")
	c.Rounds, c.Time, c.Ops = 1, 200*time.Microsecond, 500
	s := experiment.Session{Dir: t.TempDir() + "/out", Repeats: 1, Seed: 1, Progress: experiment.NewProgress(io.Discard, false, 0)}
	res, runs, err := s.Run(t.Context(), plan.Experiment, &c)
	if err != nil || res.Partial != "" {
		t.Fatal(err, res.Partial)
	}
	for _, claim := range res.Claims {
		for _, a := range claim.Answers {
			if a.Missing && !strings.Contains(a.Why, "is missing in repeat") && a.Why != callgrind.Missing || len(claim.Answers) == 0 {
				t.Errorf("%s/%s (%s): %s", claim.ID, a.Part, a.Setup, a.Why)
			}
		}
	}
	for _, r := range runs {
		if r.Extra["ns"] <= 0 && r.Extra["cpu_ns"] <= 0 {
			t.Errorf("%s %s %s: %v", r.Setup, r.Load, r.Pattern, r.Extra)
		}
	}
}
