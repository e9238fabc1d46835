package fan

import (
	"testing"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

// A saving that cannot be, because it is larger than the shorter branch takes, once counted as a saving.
func TestNoMoreIsSavedThanTheShorterBranchTakes(t *testing.T) {
	for _, c := range []struct {
		kind    string
		saves   float64 // µs
		missing bool
	}{
		{Virtual, 96, false}, {Virtual, 100, false}, {Virtual, 101, true},
		{Computing, 101, false}, {Computing, 119, false}, {Computing, 150, true},
	} {
		var runs []results.Run
		for _, key := range saving(c.kind).Value.Keys() {
			for repeat := range judge.LeastFollow {
				took := 600e3
				if key.Pattern == Corrected {
					took -= c.saves * 1e3
				}
				runs = append(runs, results.Run{Setup: key.Setup, Load: key.Load, Pattern: key.Pattern, Repeat: repeat, Extra: map[string]float64{timeOf(c.kind).Key: took}})
			}
		}
		for _, claim := range (&ledger.Family{Claims: family.Claims[1:2]}).Judge(ledger.NewEvidence(runs, 1)) {
			for _, a := range claim.Answers {
				if a.Setup == setup(c.kind) && a.Missing != c.missing {
					t.Errorf("%s saves %v µs: %s", c.kind, c.saves, a.Why)
				}
			}
		}
	}
}
