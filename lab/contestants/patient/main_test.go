package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/admission"
	"github.com/spillway-go/spillway/lab/bubble"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	patternsplan "github.com/spillway-go/spillway/lab/patterns"
	"github.com/spillway-go/spillway/lab/results"
	shapesplan "github.com/spillway-go/spillway/lab/shapes"
)

// This process plays the roles of the program and of the command.
func TestMain(m *testing.M) {
	all := maps.Clone(roles)
	maps.Copy(all, patternsplan.Roles())
	maps.Copy(all, shapesplan.Experiment.Roles)
	maps.Copy(all, admission.Experiment.Roles)
	all[patternsplan.RoleVirtual] = contestant.Func(bubble.Func(patternsplan.SimulatedPools)) // as the program virtual does
	labtest.Main(m, all)
}

func TestThePatternsInEverySetUp(t *testing.T) {
	soak.WithoutRace(t)
	c := experiment.Sized[patternsplan.Config]("quick")
	c.Requests, c.Clients, c.Workers, c.Patients = 40, 10, 4, 500
	c.MinLatency, c.MaxLatency = time.Millisecond, 2*time.Millisecond
	c.SizeTime, c.Watch, c.Users = 60*time.Millisecond, 500*time.Millisecond, 300
	cache := t.TempDir()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} { // of the database
		t.Setenv(name, cache)
	}
	s := experiment.Session{Dir: filepath.Join(t.TempDir(), "out"), Repeats: 1, Seed: 5, Watch: func() func() float64 { return func() float64 { return 0 } }}
	res, runs, err := s.Run(t.Context(), patternsplan.Experiment, &c)
	if err != nil || res.Partial != "" {
		t.Fatalf("%v, partial %q", err, res.Partial)
	}
	for _, r := range runs {
		counted := r.Load != patternsplan.Parked && slices.Contains([]string{patternsplan.Shape, patternsplan.Process, patternsplan.Real}, r.Setup)
		if r.Failed != "" || r.Killed != "" || counted && r.Offered != 40 {
			t.Errorf("%s %s %s: failed %q, killed %q, offered %d", r.Setup, r.Load, r.Pattern, r.Failed, r.Killed, r.Offered)
		}
		if r.Setup == patternsplan.Real {
			everyGoodAnswerHasItsPlaceInTime(t, r)
		}
	}
	for _, claim := range res.Claims {
		for _, a := range claim.Answers {
			expected := strings.Contains(a.Why, "repeat") || strings.Contains(a.Why, "--postgres") // this run has one repeat and no database
			if a.Missing && !expected {
				t.Errorf("%s/%s (%s): %s", claim.ID, a.Part, a.Setup, a.Why)
			}
		}
		if len(claim.Answers) == 0 {
			t.Errorf("%s has no answer", claim.ID)
		}
	}
	if len(res.Demos) != 3 {
		t.Errorf("%d demonstrations", len(res.Demos))
	}
}

func everyGoodAnswerHasItsPlaceInTime(t *testing.T, r results.Run) {
	t.Helper()
	timed := uint64(0)
	for _, p := range r.Series {
		for _, n := range p.Took {
			timed += n
		}
	}
	if good := r.Of("ok").Count; timed != good {
		t.Errorf("%s %s: the time line has the latencies of %d of %d good answers", r.Load, r.Pattern, timed, good)
	}
}

func TestADatabaseWithoutAPlaceSaysWhereItBelongs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", file)
	t.Setenv("HOME", file)
	if _, err := database(t.Context(), 10); err == nil || !strings.Contains(err.Error(), "it belongs in your cache folder") {
		t.Errorf("%v", err)
	}
}
