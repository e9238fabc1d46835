package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/burst"
	"github.com/spillway-go/spillway/lab/results"
)

func TestABurstFromLoadToVerdict(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	code, stdout, stderr := command(t, "lab", "B", "--repeats", "1", "--seconds", "0.1", "--rate", "3000", "--generators", "10",
		"--memory-cap", "3000", "--seed", "5", "--out", dir, "--json")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	var printed results.Results
	if err := json.Unmarshal([]byte(stdout), &printed); err != nil {
		t.Fatalf("standard output is not results.json: %v", err)
	}
	stored, runs, err := results.Read(dir)
	if err != nil || stored.Experiment != "B" || stored.Scaled == "" || stored.Partial != "" || len(stored.Demos) != 2 ||
		!reflect.DeepEqual(printed.Claims, stored.Claims) {
		t.Errorf("%v, %+v", err, stored)
	}
	if want := len(burst.Names()); len(runs) != want {
		t.Errorf("%d runs, want %d", len(runs), want)
	}
	for _, r := range runs {
		if r.Experiment != "B" || r.Failed != "" || r.Killed != "" || r.Of("ok").Count == 0 {
			t.Errorf("%s: experiment %q, failed %q, killed %q, %d done", r.Pattern, r.Experiment, r.Failed, r.Killed, r.Of("ok").Count)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, results.ReportFile))
	for _, want := range []string{"go-adaptive-pool", "Watched from outside"} {
		if err != nil || !strings.Contains(string(page), want) {
			t.Errorf("the report has no %q (%v)", want, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, results.ResultsFile)); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := command(t, "lab", "judge", dir); code != 0 || !strings.Contains(stdout, "Experiment B") {
		t.Errorf("judge of runs alone: exit code %d, %s", code, stderr)
	}
}

func TestCtrlCLeavesWhatTheShapesCostSoFar(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir := filepath.Join(t.TempDir(), "out")
	stdout, stderr := &bytes.Buffer{}, &cancelAfter{lines: 5, cancel: cancel}
	args := []string{"lab", "g", "--benchtime", "1ms", "--ops", "100", "--requests", "100", "--workers", "3", "--buffer", "1", "--repeats", "3", "--out", dir}
	if code := run(ctx, args, stdout, stderr); code != 130 || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	stored, runs, err := results.Read(dir)
	if err != nil || stored.Experiment != "G" || stored.Partial == "" || len(runs) == 0 || len(stored.Claims) == 0 {
		t.Errorf("%d runs, partial %q, %d claims, %v", len(runs), stored.Partial, len(stored.Claims), err)
	}
}
