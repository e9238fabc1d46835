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

	"github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/overload/demo"
	"github.com/spillway-go/spillway/lab/results"
)

func TestAnOverloadRunFromLoadToVerdict(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), "out")
	code, stdout, stderr := command(t, "lab", "overload", "--repeats", "1", "--load", "0.5", "--load", "2.5", "--warm-up", "50ms", "--measure", "300ms",
		"--deadline", "200ms", "--slots", "3", "--min-work", "10ms", "--max-work", "20ms", "--patients", "200", "--seed", "5", "--out", dir, "--json")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	var printed results.Results
	if err := json.Unmarshal([]byte(stdout), &printed); err != nil {
		t.Fatalf("standard output is not results.json: %v", err)
	}
	stored, runs, err := results.Read(dir)
	if err != nil || stored.Experiment != "overload" || stored.Scaled == "" || stored.Partial != "" || len(stored.Claims) != 6 ||
		!reflect.DeepEqual(printed.Claims, stored.Claims) {
		t.Errorf("%v, %+v", err, stored)
	}
	if want := 2 * len(overload.Names()); len(runs) != want {
		t.Errorf("%d runs, want %d", len(runs), want)
	}
	sampled := 0
	for _, r := range runs {
		var sum uint64
		for _, o := range r.Outcomes {
			sum += o.Count
		}
		if r.Failed != "" || r.Killed != "" || sum != r.Offered || r.Of("error").Count > 0 || r.Extra["critical_offered"] == 0 || r.Elapsed != .3 {
			t.Errorf("%s %s: failed %q, killed %q, offered %d, outcomes %d, errors %d, critical %v, elapsed %v",
				r.Load, r.Pattern, r.Failed, r.Killed, r.Offered, sum, r.Of("error").Count, r.Extra, r.Elapsed)
		}
		for _, p := range r.Series {
			if r.Pattern == overload.Spillway {
				sampled += p.Limit
			}
		}
	}
	if sampled == 0 {
		t.Error("the limit was never seen")
	}
	page, err := os.ReadFile(filepath.Join(dir, results.ReportFile))
	for _, want := range []string{`id="curves"`, "Good answers a second against offered load", "P99 latency of whatever was not refused"} {
		if err != nil || !strings.Contains(string(page), want) {
			t.Errorf("the report has no %q (%v)", want, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, results.ResultsFile)); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := command(t, "lab", "judge", dir); code != 0 || !strings.Contains(stdout, "Experiment overload") {
		t.Errorf("judge of runs alone: exit code %d, %s", code, stderr)
	}
}

func TestTheDemonstrationEndsWithItsVerdicts(t *testing.T) {
	code, stdout, stderr := command(t, "demo", "--duration", "500ms")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	for _, want := range []string{"unprotected", "semaphore, 4x too large", "spillway, no number", "Answered in time, of what was possible:",
		"calm ", "; storm ", " (p99 ", "; after the storm ", "Three panics: 2 slots, 3 handlers panicked", "never answered again"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "\x1b") {
		t.Error("escape sequences, and no terminal")
	}
}

func TestTheDemonstrationForMachines(t *testing.T) {
	code, stdout, stderr := command(t, "demo", "--duration", "500ms", "--json")
	var res demo.Result
	if err := json.Unmarshal([]byte(stdout), &res); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v", code, err)
	}
	if len(res.Rows) != 25 || len(res.Summary) != 9 || len(res.Verdicts) != len(demo.Lanes) || res.Panics == nil || res.Partial || !strings.Contains(stderr, "0.5x") {
		t.Errorf("%d rows, %d totals, %d verdicts, panics %v, partial %v", len(res.Rows), len(res.Summary), len(res.Verdicts), res.Panics, res.Partial)
	}
}

func TestCtrlCEndsTheDemonstration(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stdout, stderr := &cancelAfter{lines: 8, cancel: cancel}, &bytes.Buffer{}
	if code := run(ctx, []string{"demo", "--duration", "1s"}, stdout, stderr); code != 130 || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// cancelAfter is a writer that cancels after so many lines.
type cancelAfter struct {
	bytes.Buffer
	lines  int
	cancel func()
}

func (c *cancelAfter) Write(b []byte) (int, error) {
	n, err := c.Buffer.Write(b)
	if bytes.Count(c.Bytes(), []byte("\n")) >= c.lines {
		c.cancel()
	}
	return n, err
}

func TestTheLiveBlockIsRepaintedInPlace(t *testing.T) {
	var out bytes.Buffer
	live := &liveRows{w: &out, cfg: demo.Default(0)}
	live.begin()
	row := demo.Row{At: 1, Load: 3, Offered: 750, Phase: 1, Lanes: make([]demo.Cell, len(demo.Lanes))}
	live.row(row)
	first := strings.Count(out.String(), "\n")
	live.row(row)
	if got := strings.Count(out.String(), "\n") - first; got != live.liveLines() || !strings.Contains(out.String(), "\x1b[6A") {
		t.Errorf("%d lines a block, want %d; %q", got, live.liveLines(), out.String())
	}
	if got := sparks([]float64{0, 125, 250, 300}, 250); got != "▁▅██" {
		t.Errorf("sparks %q", got)
	}
}
