package main

import (
	"io"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/admission"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/overload"
)

// Failsafe stands in front of the lookups and the holders of every kind.
func TestFailsafePlaysInTheSceneOfHolders(t *testing.T) {
	c := experiment.Sized[admission.Config]("quick")
	c.MostLag = time.Minute // under the race detector
	c.Part, c.WarmUp, c.Time = []string{"holders"}, 50*time.Millisecond, 200*time.Millisecond
	undisturbed := func() func() float64 { return func() float64 { return 0 } }
	s := experiment.Session{Dir: t.TempDir() + "/out", Repeats: 1, Seed: 5, Progress: experiment.NewProgress(io.Discard, false, 0), Watch: undisturbed}
	res, runs, err := s.Run(t.Context(), admission.Experiment, &c)
	if err != nil || res.Partial != "" {
		t.Fatal(err, res.Partial)
	}
	kinds := 0
	for _, r := range runs {
		if r.Pattern == overload.Failsafe {
			kinds++
		}
		if r.Killed != "" || r.Failed != "" || r.Of("error").Count > 0 {
			t.Errorf("%s %s: killed %q, failed %q, %d errors", r.Setup, r.Pattern, r.Killed, r.Failed, r.Of("error").Count)
		}
	}
	if kinds != 4 {
		t.Errorf("failsafe met %d kinds of holders", kinds)
	}
}
