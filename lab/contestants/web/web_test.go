package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/routes"
	"github.com/spillway-go/spillway/lab/usage"
)

func TestMain(m *testing.M) { labtest.Main(m, roles()) }

func TestEveryPlannedContestantIsHere(t *testing.T) {
	for table, names := range routes.Tables {
		for _, name := range names {
			if _, err := start(table, name); err != nil {
				t.Errorf("%s, %s: %v", table, name, err)
			}
		}
	}
	if _, err := start(routes.TableContest, "nobody"); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("%v", err)
	}
}

func TestASessionFillsEveryCell(t *testing.T) {
	if thisBuild != routes.StdJSON {
		t.Skip("the default build is measured")
	}
	dir := t.TempDir()
	exp := routes.Experiment{Config: routes.Config{Time: 20 * time.Microsecond, Rounds: 2, OneBuild: true, MemoryCap: 2 << 30}}
	res, runs, err := experiment.Session{Dir: dir, Repeats: 1, Seed: 1}.Run(t.Context(), exp)
	if err != nil || res.Partial != "" || len(res.Demos) != 1 {
		t.Fatalf("%v, %q, %d demonstrations", err, res.Partial, len(res.Demos))
	}
	for _, r := range runs {
		published := r.Setup == routes.AsPublished
		if r.Elapsed <= 0 || len(r.Blocks["cpu_ns"]) != 2 || published != (r.Extra["cpu_ns_total"] > 0) || r.Extra["allocs"] < 0 {
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
	match := func(scenario string) routes.Job {
		entries := []routes.Entry{{Name: routes.Fiber}, {Name: routes.Nothing}}
		return routes.Job{Table: routes.TableFiber, Rounds: 1, Matches: []routes.Match{{Scenario: scenario, Entries: entries}}}
	}
	if _, err := measure(t.Context(), match(routes.JSON)); err != nil {
		t.Error(err)
	}
	if _, err := measure(t.Context(), match(routes.Untagged)); err == nil || !strings.Contains(err.Error(), "fiber: answered 404") {
		t.Errorf("%v", err)
	}
}

func TestAMeasurementThatIsStoppedSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	match := routes.Match{Scenario: routes.Get, Entries: []routes.Entry{{Name: routes.Mux}}}
	if _, err := measure(ctx, routes.Job{Table: routes.TableContest, Rounds: 1, Matches: []routes.Match{match}}); err == nil {
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
	if got.Panics > 0 && !strings.Contains(got.Example, "nil pointer") {
		t.Errorf("panicked with %s", got.Example)
	}
}
