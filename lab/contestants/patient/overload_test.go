package main

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	plan "github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/results"
)

func TestASmallSessionOfOverloadAnswersEveryClaim(t *testing.T) {
	claims, _ := smallOverload(t, 300*time.Millisecond)
	for id, a := range claims {
		if strings.Contains(a.Why, "was not run") { // in so short a time perhaps no answer is good, or a limit is in no sample
			t.Errorf("%s: %s", id, a.Why)
		}
	}
}

// smallOverload is a session at one load, undisturbed, whose runs add up. It returns what
// the claims say of the load, and the runs.
func smallOverload(t *testing.T, timed time.Duration) (map[string]results.Answer, []results.Run) {
	t.Helper()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} { // of the database
		t.Setenv(name, t.TempDir())
	}
	c := experiment.Sized[plan.Config]("quick")
	c.MostLag = time.Minute // under the race detector
	c.Load, c.Patients, c.WarmUp, c.Time = []float64{1.5}, 200, 50*time.Millisecond, timed
	c.Slots, c.Min, c.Max = 2, 20*time.Millisecond, 40*time.Millisecond
	undisturbed := func() func() float64 { return func() float64 { return 0 } }
	s := experiment.Session{Dir: t.TempDir() + "/out", Repeats: 1, Seed: 5, Progress: experiment.NewProgress(io.Discard, false, 0), Watch: undisturbed}
	res, runs, err := s.Run(t.Context(), plan.Experiment, &c)
	if err != nil || res.Partial != "" {
		t.Fatal(err, res.Partial)
	}
	claims := map[string]results.Answer{}
	for _, claim := range res.Claims {
		at := slices.IndexFunc(claim.Answers, func(a results.Answer) bool { return a.Setup == "at 1.5x" })
		if at < 0 {
			t.Fatalf("%s has no answer for the load", claim.ID)
		}
		claims[claim.ID] = claim.Answers[at]
	}
	for _, r := range runs {
		var sum uint64
		for _, o := range r.Outcomes {
			sum += o.Count
		}
		if r.Killed != "" || sum != r.Offered || r.Elapsed != timed.Seconds() || r.Params["load"] == nil {
			t.Errorf("%s %s: killed %q, offered %d, outcomes %d, elapsed %v, %v",
				r.Load, r.Pattern, r.Killed, r.Offered, sum, r.Elapsed, r.Params)
		}
		everyGoodAnswerHasItsPlaceInTime(t, r)
	}
	if want := len(c.Load) * (len(plan.Names()) + 1); len(runs) != want {
		t.Errorf("%d runs, want %d", len(runs), want)
	}
	return claims, runs
}
