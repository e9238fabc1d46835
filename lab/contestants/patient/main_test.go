package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	overloadplan "github.com/spillway-go/spillway/lab/overload"
	patternsplan "github.com/spillway-go/spillway/lab/patterns"
	"github.com/spillway-go/spillway/lab/results"
)

// This process plays the roles of the program and of the command.
func TestMain(m *testing.M) {
	all := roles()
	maps.Copy(all, patternsplan.Roles())
	labtest.Main(m, all)
}

// ownCache gives a test a place of its own for the databases.
func ownCache(t *testing.T) {
	t.Helper()
	cache := t.TempDir()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, cache)
	}
}

// session runs an experiment once.
func session(t *testing.T, e *experiment.Experiment, config any) (results.Results, []results.Run) {
	t.Helper()
	ownCache(t)
	s := experiment.Session{Dir: filepath.Join(t.TempDir(), "out"), Repeats: 1, Seed: 5, Watch: func() func() float64 { return func() float64 { return 0 } }}
	res, runs, err := s.Run(t.Context(), e, config)
	if err != nil || res.Partial != "" {
		t.Fatalf("%v, partial %q", err, res.Partial)
	}
	for _, r := range runs {
		if r.Failed != "" || r.Killed != "" {
			t.Errorf("%s %s %s: failed %q, killed %q", r.Setup, r.Load, r.Pattern, r.Failed, r.Killed)
		}
	}
	return res, runs
}

// once runs the cells of an experiment whose settings are not flags yet.
func once(t *testing.T, plan experiment.Plan, err error) (runs []results.Run) {
	t.Helper()
	ownCache(t)
	if err == nil && plan.Prepare != nil {
		err = plan.Prepare(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range plan.Cells {
		run, err := c.Run(t.Context(), experiment.Trial{Seed: 5})
		if err != nil || run.Killed != "" {
			t.Errorf("%s: %v, killed %q", c.Key(), err, run.Killed)
		}
		run.Setup, run.Load, run.Pattern = c.Setup, c.Load, c.Pattern
		runs = append(runs, run)
	}
	return runs
}

func TestOverloadOverHTTPAndSQLite(t *testing.T) {
	c := overloadplan.Defaults()
	c.Loads, c.Patients, c.WarmUp, c.Measure, c.Deadline = []float64{2.5}, 200, 50*time.Millisecond, 300*time.Millisecond, 200*time.Millisecond
	c.Work = overloadplan.Work{Slots: 3, Min: 10 * time.Millisecond, Max: 20 * time.Millisecond}
	plan, err := overloadplan.Classic{Config: c}.Plan()
	runs := once(t, plan, err)
	sampled := 0
	for _, r := range runs {
		if r.Of("error").Count > 0 || r.Extra["critical_offered"] == 0 {
			t.Errorf("%s: %d errors, critical %v", r.Pattern, r.Of("error").Count, r.Extra)
		}
		for _, p := range r.Series {
			if r.Pattern == overloadplan.Spillway || r.Pattern == overloadplan.Failsafe {
				sampled += p.Limit
			}
		}
	}
	if len(runs) != len(overloadplan.Names()) || sampled == 0 {
		t.Errorf("%d runs, limits %d", len(runs), sampled)
	}
}

func TestThePatternsInEverySetUp(t *testing.T) {
	c := experiment.Sized[patternsplan.Config]("quick")
	c.Requests, c.Clients, c.Workers, c.Patients = 40, 10, 4, 500
	c.MinLatency, c.MaxLatency = time.Millisecond, 2*time.Millisecond
	res, runs := session(t, patternsplan.Experiment, &c)
	for _, r := range runs {
		if r.Load != patternsplan.Parked && r.Offered != 40 {
			t.Errorf("%s %s %s offered %d", r.Setup, r.Load, r.Pattern, r.Offered)
		}
	}
	for _, claim := range res.Claims {
		for _, a := range claim.Answers {
			if a.Missing && !strings.Contains(a.Why, "repeat") {
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
