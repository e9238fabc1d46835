package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/burst"
	"github.com/spillway-go/spillway/lab/results"
)

func TestABurstFromLoadToVerdict(t *testing.T) {
	stored, runs, _ := journey{
		args:       []string{"B", "--repeats", "1", "--seconds", "0.1", "--rate", "3000", "--generators", "10", "--memory-cap", "3000"},
		experiment: "B",
		report:     []string{"go-adaptive-pool", "Watched from outside"},
	}.run(t)
	if want := len(burst.Names()); len(runs) != want || len(stored.Demos) != 2 {
		t.Errorf("%d runs, want %d; %d demonstrations, want 2", len(runs), want, len(stored.Demos))
	}
	for _, r := range runs {
		if r.Experiment != "B" || r.Failed != "" || r.Killed != "" || r.Of("ok").Count == 0 {
			t.Errorf("%s: experiment %q, failed %q, killed %q, %d done", r.Pattern, r.Experiment, r.Failed, r.Killed, r.Of("ok").Count)
		}
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
