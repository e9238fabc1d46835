// Package soak reports the figures of the soak: the tests of what is about real time
// (kills, storms, latencies, rates, memory of processes), which are not part of the gate.
// A test of the soak is a function TestSoak… in a file with the build tag soak. Each of
// its bounds goes through this package with the reason for the number; package run
// collects the figures in a table.
//
//	make soak           every test of the soak, one at a time
//	make soak NAMES=…   those whose names match one of the patterns
package soak

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A Figure is something measured, with its bound.
type Figure struct {
	Name  string // what was measured
	Got   string // the value with its unit
	Bound string // the relation and the number with its unit
	Why   string // the reason for the number of the bound
	Held  bool   // whether the value is within the bound
}

// prefix begins the line of a test's output that holds a figure as JSON.
const prefix = "soak figure: "

// AtMost fails the test if a value is above its bound, and reports both.
func AtMost(t testing.TB, name string, got, bound float64, unit, why string) {
	t.Helper()
	report(t, Figure{name, number(got, unit), "≤ " + number(bound, unit), why, got <= bound})
}

// AtLeast fails the test if a value is below its bound, and reports both.
func AtLeast(t testing.TB, name string, got, bound float64, unit, why string) {
	t.Helper()
	report(t, Figure{name, number(got, unit), "≥ " + number(bound, unit), why, got >= bound})
}

// Within fails the test if something took longer than its bound, and reports both.
func Within(t testing.TB, name string, elapsed, bound time.Duration, why string) {
	t.Helper()
	report(t, Figure{name, rounded(elapsed).String(), "≤ " + bound.String(), why, elapsed <= bound})
}

func report(t testing.TB, f Figure) {
	t.Helper()
	line, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s%s", prefix, line)
	if !f.Held {
		t.Errorf("%s: %s, want %s (%s)", f.Name, f.Got, f.Bound, f.Why)
	}
}

// Parse returns the figure in a line of a test's output.
func Parse(line string) (Figure, bool) {
	_, text, found := strings.Cut(line, prefix)
	var f Figure
	if !found || json.Unmarshal([]byte(text), &f) != nil {
		return Figure{}, false
	}
	return f, true
}

func number(v float64, unit string) string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if whole, digits, found := strings.Cut(text, "."); found && len(whole)+len(digits) > 4 {
		text = strconv.FormatFloat(v, 'f', max(0, 4-len(whole)), 64)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s", text, unit))
}

// rounded leaves three digits or so.
func rounded(d time.Duration) time.Duration {
	for unit := time.Second; unit > 1; unit /= 10 {
		if d >= unit {
			return d.Round(unit / 100)
		}
	}
	return d
}
