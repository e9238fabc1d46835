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

func TestAPoolsRunFromJobToVerdict(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	code, stdout, stderr := command(t, "lab", "pools", "--repeats", "3", "--part", "submit", "--part", "refuse", "--producers", "1", "--work", "0s",
		"--workers", "2", "--rounds", "2", "--time", "100us", "--contestant", "spillway", "--contestant", "channel", "--seed", "5", "--out", dir, "--json")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	if !strings.Contains(stderr, "no-op jobs · 1→2") {
		t.Errorf("progress says nothing of no-op jobs:\n%s", stderr)
	}
	var printed results.Results
	if err := json.Unmarshal([]byte(stdout), &printed); err != nil {
		t.Fatalf("standard output is not results.json: %v", err)
	}
	stored, runs, err := results.Read(dir)
	if err != nil || stored.Experiment != "pools" || stored.Scaled == "" || stored.Partial != "" || len(stored.Claims) == 0 ||
		!reflect.DeepEqual(printed.Claims, stored.Claims) {
		t.Errorf("%v, %+v", err, stored)
	}
	if want := 3 * 2 * 3; len(runs) != want { // repeats, set-ups, two contestants and a twin
		t.Errorf("%d runs, want %d", len(runs), want)
	}
	// The raw runs are enough, and give the same.
	if err := os.Remove(filepath.Join(dir, results.ResultsFile)); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr = command(t, "lab", "judge", dir)
	if code != 0 || !strings.Contains(stdout, "Experiment pools") || !strings.Contains(stdout, "pools/3-allocs") {
		t.Errorf("judge of runs alone: exit code %d, %s", code, stderr)
	}
}
