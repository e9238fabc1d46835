package main

import (
	"testing"

	"github.com/spillway-go/spillway/lab/burst"
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
