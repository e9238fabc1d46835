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
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} { // of the database
		t.Setenv(name, t.TempDir())
	}
	c := experiment.Sized[plan.Config]("quick")
	c.MostLag = time.Minute // under the race detector
	c.Load, c.Patients, c.WarmUp, c.Time = []float64{1.5}, 200, 50*time.Millisecond, 300*time.Millisecond
	c.Slots, c.Min, c.Max = 2, 20*time.Millisecond, 40*time.Millisecond
	undisturbed := func() func() float64 { return func() float64 { return 0 } }
	s := experiment.Session{Dir: t.TempDir() + "/out", Repeats: 1, Seed: 5, Progress: experiment.NewProgress(io.Discard, false, 0), Watch: undisturbed}
	res, runs, err := s.Run(t.Context(), plan.Experiment, &c)
	if err != nil || res.Partial != "" {
		t.Fatal(err, res.Partial)
	}
	for _, claim := range res.Claims {
		at := slices.IndexFunc(claim.Answers, func(a results.Answer) bool { return a.Setup == "at 1.5x" })
		if at < 0 {
			t.Fatalf("%s has no answer for the load", claim.ID)
		}
		if a := claim.Answers[at]; a.Missing && !strings.Contains(a.Why, "is missing in repeat") {
			t.Errorf("%s: %s", claim.ID, a.Why)
		}
	}
	limits := map[string]int{}
	for _, r := range runs {
		var sum uint64
		for _, o := range r.Outcomes {
			sum += o.Count
		}
		if r.Killed != "" || sum != r.Offered || r.Of("error").Count > 0 || r.Elapsed != 0.3 || r.Params["load"] == nil {
			t.Errorf("%s %s: killed %q, offered %d, outcomes %d, errors %d, elapsed %v, %v",
				r.Load, r.Pattern, r.Killed, r.Offered, sum, r.Of("error").Count, r.Elapsed, r.Params)
		}
		for _, p := range r.Series {
			limits[r.Pattern] += p.Limit
		}
		everyGoodAnswerHasItsPlaceInTime(t, r)
	}
	if want := len(c.Load) * (len(plan.Names()) + 1); len(runs) != want || limits[plan.Spillway] == 0 || limits[plan.Failsafe] == 0 {
		t.Errorf("%d runs, want %d; limits %v", len(runs), want, limits)
	}
}
