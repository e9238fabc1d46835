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

func TestAFanOutFromLookupToVerdict(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	code, stdout, stderr := command(t, "lab", "f", "--repeats", "1", "-n", "2", "--branch", "1µs", "--branch", "20µs", "--rounds", "1", "--time", "100µs",
		"--calls", "500", "--contestant", "sequential", "--contestant", "corrected", "--contestant", "spillway", "--seed", "5", "--out", dir, "--json")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	var printed results.Results
	if err := json.Unmarshal([]byte(stdout), &printed); err != nil {
		t.Fatalf("standard output is not results.json: %v", err)
	}
	stored, runs, err := results.Read(dir)
	if err != nil || stored.Experiment != "F" || stored.Scaled == "" || stored.Partial != "" || len(stored.Demos) != 4 || len(runs) == 0 ||
		!reflect.DeepEqual(printed.Claims, stored.Claims) {
		t.Errorf("%v, %+v", err, stored)
	}
	page, err := os.ReadFile(filepath.Join(dir, results.ReportFile))
	for _, want := range []string{`id="grid"`, `class="heat-`, "20 µs"} {
		if err != nil || !strings.Contains(string(page), want) {
			t.Errorf("the report has no %q (%v)", want, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, results.ResultsFile)); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr = command(t, "lab", "judge", dir)
	for _, want := range []string{"Experiment F", "GRID, COMPUTING, ONE PROCESSOR", "break-even for each branch"} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("judge of runs alone: exit code %d, no %q; %s", code, want, stderr)
		}
	}
}
