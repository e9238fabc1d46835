package main

import "testing"

func TestAFanOutFromLookupToVerdict(t *testing.T) {
	stored, runs, _ := journey{
		args: []string{"f", "--repeats", "1", "-n", "2", "--branch", "1µs", "--branch", "20µs", "--rounds", "1", "--time", "100µs",
			"--calls", "500", "--contestant", "sequential", "--contestant", "corrected", "--contestant", "spillway"},
		experiment: "F",
		report:     []string{`id="grid"`, `class="heat-`, "20 µs"},
		judged:     []string{"GRID, COMPUTING, ONE PROCESSOR", "break-even for each branch"},
	}.run(t)
	if len(stored.Demos) != 4 || len(runs) == 0 {
		t.Errorf("%d demonstrations, %d runs", len(stored.Demos), len(runs))
	}
}
