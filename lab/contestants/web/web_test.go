package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/callgrind"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/routes"
	"github.com/spillway-go/spillway/load/usage"
)

func TestMain(m *testing.M) { labtest.Main(m, roles) }

func TestAContestantThatIsNotHereIsNamed(t *testing.T) {
	if _, err := measure(t.Context(), routes.Job{Players: []string{"nobody"}}); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("%v", err)
	}
}

func TestASmallSessionAnswersEveryClaim(t *testing.T) {
	soak.WithoutRace(t)
	t.Setenv("PATH", "") // without Valgrind, which cannot count in a test binary
	if thisBuild != routes.StdJSON {
		t.Skip("the default build is measured")
	}
	c := experiment.Sized[routes.Config]("quick")
	c.Time, c.Rounds, c.OneBuild, c.MemoryCap = 20*time.Microsecond, 2, true, 2048
	dir := t.TempDir() + "/out"
	res, runs, err := experiment.Session{Dir: dir, Repeats: 1, Seed: 1, Progress: experiment.NewProgress(io.Discard, false, 0)}.Run(t.Context(), routes.Experiment, &c)
	if err != nil || res.Partial != "" || len(res.Demos) != 1 {
		t.Fatalf("%v, %q, %d demonstrations", err, res.Partial, len(res.Demos))
	}
	for _, claim := range res.Claims {
		for _, a := range claim.Answers {
			// So short a turn may take no longer than the harness alone.
			inOtherBuild := strings.HasSuffix(a.Setup, routes.JSONv2)
			counted := strings.Contains(a.Why, callgrind.Missing)
			if a.Missing && !inOtherBuild && !counted && a.Unit == "" || inOtherBuild && !strings.Contains(a.Why, "--one-build") {
				t.Errorf("%s/%s (%s): %s", claim.ID, a.Part, a.Setup, a.Why)
			}
		}
	}
	for _, r := range runs {
		const rounds = 2
		published := r.Setup == routes.AsPublished
		if sent := r.Params["requests"] != nil; sent && (len(r.Blocks["cpu_ns"]) != rounds || published != (r.Extra["cpu_ns_total"] > 0)) || r.Elapsed <= 0 {
			t.Errorf("%s, %s, %s: %+v", r.Setup, r.Load, r.Pattern, r)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, results.ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Net of the harness", "fiber on fasthttp", "another request&#39;s value"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the report has no %q", want)
		}
	}
}

// A contestant with a wrong answer is not measured.
func TestAWrongAnswerIsNoFigure(t *testing.T) {
	job := routes.Job{Rounds: 1, Scenario: routes.JSON, Players: routes.OnFasthttp}
	if _, err := measure(t.Context(), job); err != nil {
		t.Error(err)
	}
	job.Scenario = routes.Untagged
	if _, err := measure(t.Context(), job); err == nil || !strings.Contains(err.Error(), "fiber: answered 404") {
		t.Errorf("%v", err)
	}
}

func TestACountNeedsRightAnswers(t *testing.T) {
	job := routes.CountJob{Scenarios: []string{routes.Short, routes.Get}, Players: routes.Counted, Rounds: 2, Requests: 3}
	if _, err := count(t.Context(), job); err != nil {
		t.Error(err)
	}
	for want, players := range map[string][]string{"fiber: answered 404": routes.OnFasthttp, "nobody": {"nobody"}} {
		job.Scenarios, job.Players = []string{routes.Untagged}, players
		if _, err := count(t.Context(), job); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestAMeasurementThatIsStoppedSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := measure(ctx, routes.Job{Rounds: 1, Scenario: routes.Get, Players: []string{routes.Mux}}); err == nil {
		t.Error("no error")
	}
}

func TestEveryLaneHasItsShare(t *testing.T) {
	for _, c := range []struct{ n, parts int }{{1, 1}, {7, 3}, {3, 8}, {1000, 6}} {
		var all []int
		sum := 0
		for i := range c.parts {
			all = append(all, share(c.n, i, c.parts))
			sum += all[i]
		}
		if sum != c.n || slices.Max(all)-slices.Min(all) > 1 {
			t.Errorf("%d in %d: %v", c.n, c.parts, all)
		}
	}
}

func TestContextsOutliveTheirHandlersSafelyUnlessPooled(t *testing.T) {
	for _, name := range []string{routes.Spillway, routes.GinTyped, routes.Fresh} {
		got, err := lookLate(t.Context(), routes.LateJob{Name: name, Requests: 2000})
		if err != nil || got.Right != 2000 || got.Wrong != 0 || got.Panics != 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if usage.Race {
		return // the pooled one is a data race by design
	}
	got, err := lookLate(t.Context(), routes.LateJob{Name: routes.Pooled, Requests: 2000})
	if err != nil || got.Right != 0 || got.Wrong+got.Panics != 2000 {
		t.Errorf("pooled: %+v, %v", got, err)
	}
}
