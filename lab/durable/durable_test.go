package durable

import (
	"testing"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/ledger/ledgertest"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

// made is runs of each cell, with these figures by contestant.
func made(repeats int, figures map[string]map[string]float64) (runs []results.Run) {
	p, _ := plan(experiment.Sized[Config](""))
	for _, k := range p.Keys() {
		for repeat := range repeats {
			runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Repeat: repeat, Extra: figures[k.Pattern]})
		}
	}
	return runs
}

func TestEveryRowDecidesWhatIsPlanted(t *testing.T) { ledgertest.Check(t, family, made(1, nil)) }

func TestTheRateDecidesAndNotTheDisk(t *testing.T) {
	for _, c := range []struct {
		together, unsynced, each, missing float64
		goal, share                       results.Verdict
	}{
		{20_000, 22_000, 800, 0, results.Holds, results.Holds},
		{47_416, 48_900, 6_252, 0, results.Holds, results.Holds}, // a fast disk, on which an fsync on each is fast too
		{14_000, 14_500, 700, 0, results.Fails, results.Holds},
		{20_000, 40_000, 800, 0, results.Holds, results.Fails},
		{20_000, 22_000, 800, 1, results.Fails, results.Holds},
	} {
		runs := made(judge.LeastFollow+1, map[string]map[string]float64{
			GroupCommit: {"rate": c.together, "missing": c.missing}, Each: {"rate": c.each, "missing": 0}, Interval: {"rate": c.unsynced, "missing": 0},
		})
		got := map[string]results.Claim{}
		for _, claim := range family.Judge(ledger.NewEvidence(runs, 1)) {
			got[claim.ID] = claim
		}
		if got["engine-2"].Verdict != c.goal || got["group-commit"].Verdict != c.share {
			t.Errorf("%+v: %v", c, got)
		}
		beside := got["group-commit"].Answers[1]
		if !beside.Beside || beside.Measured != c.together/c.each {
			t.Errorf("beside an fsync on each: %+v", beside)
		}
	}
}
