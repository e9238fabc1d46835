package soak

import (
	"fmt"
	"testing"
	"time"
)

// A recorder keeps what a test would print.
type recorder struct {
	testing.TB
	lines  []string
	failed bool
}

func (r *recorder) Helper() {}
func (r *recorder) Logf(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}
func (r *recorder) Errorf(format string, args ...any) { r.failed = true }

func TestAFigureIsReportedAndReadBack(t *testing.T) {
	for _, tt := range []struct {
		report func(t testing.TB)
		want   Figure
	}{
		{func(t testing.TB) { AtMost(t, "memory", 97.23456, 120, "MiB", "why") }, Figure{"memory", "97.23 MiB", "≤ 120 MiB", "why", true}},
		{func(t testing.TB) { AtMost(t, "lost", 1, 0, "jobs", "why") }, Figure{"lost", "1 jobs", "≤ 0 jobs", "why", false}},
		{func(t testing.TB) { AtLeast(t, "answered", 0.5, 0.9, "", "why") }, Figure{"answered", "0.5", "≥ 0.9", "why", false}},
		{func(t testing.TB) { AtLeast(t, "rate", 123456, 1e5, "/s", "why") }, Figure{"rate", "123456 /s", "≥ 100000 /s", "why", true}},
		{func(t testing.TB) { Within(t, "restart", 1234567*time.Microsecond, 2*time.Second, "why") }, Figure{"restart", "1.23s", "≤ 2s", "why", true}},
		{func(t testing.TB) { Within(t, "restart", 3*time.Second, 2*time.Second, "why") }, Figure{"restart", "3s", "≤ 2s", "why", false}},
	} {
		r := &recorder{TB: t}
		tt.report(r)
		if len(r.lines) != 1 {
			t.Fatalf("%d lines, want 1: %q", len(r.lines), r.lines)
		}
		if got, ok := Parse("    some_test.go:12: " + r.lines[0] + "\n"); !ok || got != tt.want {
			t.Errorf("read back %+v from %q, want %+v", got, r.lines[0], tt.want)
		}
		if r.failed == tt.want.Held {
			t.Errorf("%s: failed is %v, held is %v", tt.want.Name, r.failed, tt.want.Held)
		}
	}
	if f, ok := Parse("    some_test.go:12: soak figure: {\n"); ok {
		t.Errorf("a damaged line gave %+v", f)
	}
}
