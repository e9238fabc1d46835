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
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/overload"
	patternsplan "github.com/spillway-go/spillway/lab/patterns"
	shapesplan "github.com/spillway-go/spillway/lab/shapes"
)

// This process plays the roles of the program and of the command.
func TestMain(m *testing.M) {
	all := maps.Clone(overload.Roles)
	maps.Copy(all, roles)
	maps.Copy(all, patternsplan.Roles())
	maps.Copy(all, shapesplan.Experiment.Roles)
	labtest.Main(m, all)
}

func TestThePatternsInEverySetUp(t *testing.T) {
	soak.WithoutRace(t)
	c := experiment.Sized[patternsplan.Config]("quick")
	c.Requests, c.Clients, c.Workers, c.Patients = 40, 10, 4, 500
	c.MinLatency, c.MaxLatency = time.Millisecond, 2*time.Millisecond
	c.SizeTime, c.Calm, c.Beside, c.Users = 60*time.Millisecond, 400*time.Millisecond, time.Second, 300
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
		counted := r.Load != patternsplan.Parked && r.Load != patternsplan.Looking && slices.Contains([]string{patternsplan.Shape, patternsplan.Real}, r.Setup)
		if r.Failed != "" || r.Killed != "" || counted && r.Offered != 40 {
			t.Errorf("%s %s %s: failed %q, killed %q, offered %d", r.Setup, r.Load, r.Pattern, r.Failed, r.Killed, r.Offered)
		}
	}
	for _, claim := range res.Claims {
		for _, a := range claim.Answers {
			// This run has one repeat, no database, and sizes at which nothing is refused.
			expected := strings.Contains(a.Why, "repeat") || strings.Contains(a.Why, "--postgres") || strings.Contains(a.Why, "not the published ones")
			if a.Missing && !expected {
				t.Errorf("%s/%s (%s): %s", claim.ID, a.Part, a.Setup, a.Why)
			}
		}
		if len(claim.Answers) == 0 {
			t.Errorf("%s has no answer", claim.ID)
		}
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
