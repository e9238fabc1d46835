//go:build soak

package main

import (
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
	plan "github.com/spillway-go/spillway/lab/budget"
	"github.com/spillway-go/spillway/lab/experiment"
)

// Passing means that the whole experiment, as short as it can be, runs in several
// processes, and that every contestant admits something.
func TestSoakTheExperimentOfBudgetsRuns(t *testing.T) {
	c := experiment.Sized[plan.Config]("quick")
	runs, err := c.Measure(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		if run.Failed != "" {
			t.Errorf("%s, %s: %s", run.Setup, run.Pattern, run.Failed)
		}
		soak.AtLeast(t, run.Setup+", "+run.Pattern+": admissions", run.Extra["admissions"], 1, "", "a replica that admits nothing was not measured")
	}
}
