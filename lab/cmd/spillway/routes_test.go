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

func TestRoutesFromRequestToVerdict(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	code, stdout, stderr := command(t, "lab", "r", "--repeats", "1", "--rounds", "1", "--requests", "8", "--one-build", "--seed", "5", "--out", dir, "--json")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	var printed results.Results
	if err := json.Unmarshal([]byte(stdout), &printed); err != nil {
		t.Fatalf("standard output is not results.json: %v", err)
	}
	stored, runs, err := results.Read(dir)
	if err != nil || stored.Experiment != "R" || stored.Scaled == "" || stored.Partial != "" || len(stored.Demos) != 1 || len(runs) == 0 ||
		!reflect.DeepEqual(printed.Claims, stored.Claims) {
		t.Errorf("%v, %+v", err, stored)
	}
	page, err := os.ReadFile(filepath.Join(dir, results.ReportFile))
	for _, want := range []string{"Net of the harness", "fiber on fasthttp", "another request&#39;s value"} {
		if err != nil || !strings.Contains(string(page), want) {
			t.Errorf("the report has no %q (%v)", want, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, results.ResultsFile)); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr = command(t, "lab", "judge", dir)
	for _, want := range []string{"Experiment R", "CONTEST, ENCODING/JSON", "published figure"} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("judge of runs alone: exit code %d, no %q; %s", code, want, stderr)
		}
	}
}
