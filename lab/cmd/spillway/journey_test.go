package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/results"
)

// journey runs an experiment from its command line to its verdict, and computes the
// verdict again from the raw runs alone.
type journey struct {
	args       []string // after "lab", without --seed, --out and --json
	experiment string
	report     []string // what the page shows
	judged     []string // what "lab judge" prints beside the experiment's name
}

// run returns what was stored, the runs, and what progress was shown.
func (j journey) run(t *testing.T) (stored results.Results, runs []results.Run, progress string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	code, stdout, progress := command(t, append(append([]string{"lab"}, j.args...), "--seed", "5", "--out", dir, "--json")...)
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, progress)
	}
	var printed results.Results
	if err := json.Unmarshal([]byte(stdout), &printed); err != nil {
		t.Fatalf("standard output is not results.json: %v", err)
	}
	stored, runs, err := results.Read(dir)
	if err != nil || stored.Experiment != j.experiment || stored.Scaled == "" || stored.Partial != "" || len(stored.Claims) == 0 ||
		!reflect.DeepEqual(printed.Claims, stored.Claims) {
		t.Errorf("%v, %+v", err, stored)
	}
	page, err := os.ReadFile(filepath.Join(dir, results.ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range j.report {
		if !strings.Contains(string(page), want) {
			t.Errorf("the report has no %q", want)
		}
	}
	if err := os.Remove(filepath.Join(dir, results.ResultsFile)); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := command(t, "lab", "judge", dir)
	for _, want := range append(j.judged, "Experiment "+j.experiment) {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("judge of runs alone: exit code %d, no %q; %s", code, want, stderr)
		}
	}
	return stored, runs, progress
}
