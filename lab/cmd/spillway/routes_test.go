package main

import "testing"

func TestRoutesFromRequestToVerdict(t *testing.T) {
	stored, runs, _ := journey{
		args:       []string{"r", "--repeats", "1", "--rounds", "1", "--requests", "8", "--one-build"},
		experiment: "R",
		report:     []string{"Net of the harness", "fiber on fasthttp", "another request&#39;s value"},
		judged:     []string{"CONTEST, ENCODING/JSON", "published figure"},
	}.run(t)
	if len(stored.Demos) != 1 || len(runs) == 0 {
		t.Errorf("%d demonstrations, %d runs", len(stored.Demos), len(runs))
	}
}
