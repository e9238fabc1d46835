package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/callgrind"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/routes"
	"github.com/spillway-go/spillway/lab/turns"
	"github.com/spillway-go/spillway/load/usage"
)

func TestMain(m *testing.M) { labtest.Main(m, roles) }

// play plays one round, for which every answer has to be right.
func play(t *testing.T, role contestant.Role, players ...routes.Player) error {
	input, err := json.Marshal(turns.Game[routes.Player]{Config: turns.Config{Rounds: 1, Least: 3}, Players: players})
	if err != nil {
		t.Fatal(err)
	}
	_, err = role(t.Context(), input, nil)
	return err
}

// A contestant with a wrong answer is not measured, nor one of another build.
func TestAWrongAnswerIsNoFigure(t *testing.T) {
	requests["wrong"] = request{http.MethodGet, "/", "", "", http.StatusOK}
	defer delete(requests, "wrong")
	for _, role := range []string{routes.RoleMeasure, routes.RoleCount} {
		for want, p := range map[string]routes.Player{
			"mux by hand: answered 404": {Name: routes.Mux, Scenario: "wrong", Build: thisBuild},
			`no contestant "nobody"`:    {Name: "nobody", Scenario: routes.Get, Build: thisBuild},
			"instead of another":        {Name: routes.Mux, Scenario: routes.Get, Build: "another"},
		} {
			if err := play(t, roles[role], p); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", role, err, want)
			}
		}
		if err := play(t, roles[role], routes.Player{Name: routes.Nothing, Scenario: routes.Get, Build: thisBuild}, routes.Player{Name: routes.Pooled, Scenario: routes.Parallel, Build: thisBuild}); err != nil {
			t.Errorf("%s: %v", role, err)
		}
	}
}

func TestASmallSessionAnswersEveryClaim(t *testing.T) {
	soak.WithoutRace(t)
	t.Setenv("PATH", "") // without Valgrind, which cannot count in a test binary
	if thisBuild != routes.StdJSON {
		t.Skip("the default build is measured")
	}
	c := experiment.Sized[routes.Config]("quick")
	c.Time, c.Rounds, c.OneBuild = 20*time.Microsecond, 2, true
	dir := t.TempDir() + "/out"
	res, runs, err := experiment.Session{Dir: dir, Repeats: 1, Seed: 1, Progress: experiment.NewProgress(io.Discard, false, 0)}.Run(t.Context(), routes.Experiment, &c)
	if err != nil || res.Partial != "" {
		t.Fatalf("%v, %q", err, res.Partial)
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
		if inTurns := r.Setup != routes.LeftAlone && r.Setup != "after the handler has returned"; inTurns && len(r.Blocks["cpu_ns"]) != rounds || r.Elapsed <= 0 {
			t.Errorf("%s, %s, %s: %+v", r.Setup, r.Load, r.Pattern, r)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, results.ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Net of the harness", "other requests&#39; values seen"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the report has no %q", want)
		}
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
	for _, name := range routes.Late {
		if name == routes.Pooled && usage.Race {
			continue // it is a data race by design
		}
		got, err := lookLate(t.Context(), name)
		if pooled := name == routes.Pooled; err != nil || (got["right"] == 0) != pooled || got["right"]+got["wrong"]+got["panics"] != routes.LateRequests || !pooled && got["right"] != routes.LateRequests {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
