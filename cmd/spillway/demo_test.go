package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spillway-go/spillway/cmd/spillway/internal/demo"
)

func TestTheDemonstrationEndsWithItsVerdicts(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command(t, "demo", "--duration", "500ms")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	for _, want := range []string{"unprotected", "semaphore, 4x too large", "spillway, no number", "Answered in time, of what was possible:",
		"calm: 0.5x, 125 requests a second\n", "storm: 3x, 750 requests a second\n", "  calm ", "  storm ", " (p99 ", "  after the storm ",
		"Three panics: 2 slots, 3 handlers panicked", "never answered again"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	for line := range strings.Lines(stdout) {
		if utf8.RuneCountInString(line) > 81 || strings.Contains(line, "\x1b") {
			t.Errorf("more than 80 columns, or an escape sequence: %q", line)
		}
	}
}

func TestTheDemonstrationForMachines(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stdout, stderr := &cancelAfter{lines: 8, cancel: cancel}, &bytes.Buffer{}
	if code := run(ctx, []string{"demo", "--duration", "1s"}, stdout, stderr); code != 130 || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// cancelAfter is a writer that cancels after a number of lines.
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
