package main

import (
	"strings"
	"testing"
)

func TestAPoolsRunFromJobToVerdict(t *testing.T) {
	_, runs, progress := journey{
		args: []string{"pools", "--repeats", "3", "--part", "submit", "--part", "refuse", "--producers", "1", "--work", "0s",
			"--workers", "2", "--rounds", "2", "--time", "100us", "--contestant", "spillway", "--contestant", "channel"},
		experiment: "pools",
		judged:     []string{"pools/3-allocs"},
	}.run(t)
	if !strings.Contains(progress, "no-op jobs · 1→2") {
		t.Errorf("progress says nothing of no-op jobs:\n%s", progress)
	}
	if want := 3 * 2 * 3; len(runs) != want { // repeats, set-ups, two contestants and a twin
		t.Errorf("%d runs, want %d", len(runs), want)
	}
}
