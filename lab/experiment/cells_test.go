package experiment_test

import (
	"slices"
	"testing"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

func TestRivalsAreComparedWithinARound(t *testing.T) {
	k := ledger.Key{Setup: "s", Load: "l", Pattern: "spillway"}
	keys := append(k.AndTwin(true), k.By("spillway-other"), k.By("channel"), ledger.Key{Setup: "s", Load: "alone", Pattern: "channel"})
	runs := make([]results.Run, len(keys))
	for i, ns := range [][]float64{{100, 330}, {1, 1}, {1, 1}, {200, 600}, {1, 1}} {
		ledger.Keep(&runs[i], "ns", ns)
	}
	experiment.Behind(keys, runs, "ns")
	for i, run := range runs {
		if got := run.Blocks["behind"]; i == 3 && !slices.Equal(got, []float64{.5, .55}) || i != 3 && got != nil {
			t.Errorf("%s: %v", keys[i], got)
		}
	}
}
