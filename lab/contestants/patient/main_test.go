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

// session runs an experiment once and returns the runs.
func session(t *testing.T, e experiment.Experiment) []results.Run {
	t.Helper()
	cache := t.TempDir()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} { // of the databases
		t.Setenv(name, cache)
	}
	s := experiment.Session{Dir: filepath.Join(t.TempDir(), "out"), Repeats: 1, Seed: 5}
	res, runs, err := s.Run(t.Context(), e)
	if err != nil || res.Partial != "" {
		t.Fatalf("%v, partial %q", err, res.Partial)
	}
	for _, r := range runs {
		if r.Failed != "" || r.Killed != "" {
			t.Errorf("%s %s %s: failed %q, killed %q", r.Setup, r.Load, r.Pattern, r.Failed, r.Killed)
		}
	}
	return runs
}

func TestOverloadOverHTTPAndSQLite(t *testing.T) {
	c := overloadplan.Defaults()
	c.Loads, c.Patients, c.WarmUp, c.Measure, c.Deadline = []float64{2.5}, 200, 50*time.Millisecond, 300*time.Millisecond, 200*time.Millisecond
	c.Work = overloadplan.Work{Slots: 3, Min: 10 * time.Millisecond, Max: 20 * time.Millisecond}
	runs := session(t, overloadplan.Experiment{Config: c})
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

func TestThePatternsInBothSetups(t *testing.T) {
	c := patternsplan.Defaults()
	c.Requests, c.Clients, c.Workers, c.Patients = 40, 10, 4, 500
	c.MinLatency, c.MaxLatency = time.Millisecond, 2*time.Millisecond
	setups := map[string]int{}
	for _, r := range session(t, patternsplan.Experiment{Config: c}) {
		setups[r.Setup]++
		if r.Load != patternsplan.Parked && r.Offered != 40 {
			t.Errorf("%s %s %s offered %d", r.Setup, r.Load, r.Pattern, r.Offered)
		}
	}
	if setups[patternsplan.Published] == 0 || setups[patternsplan.Real] == 0 {
		t.Errorf("runs by set-up: %v", setups)
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
