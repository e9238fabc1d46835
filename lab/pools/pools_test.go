package pools

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/ledger/ledgertest"
	"github.com/spillway-go/spillway/lab/results"
)

// planned is a run of every cell.
func planned(c Config) (runs []results.Run) {
	runs = labtest.Planned(plan(c))
	for i := range runs {
		runs[i].Params = map[string]any{"gomaxprocs": float64(runtime.GOMAXPROCS(0))}
	}
	return runs
}

func TestVerdictsFollowTheFigures(t *testing.T) {
	soak.WithoutRace(t)
	ledgertest.Check(t, Experiment.Family, planned(experiment.Sized[Config]("full")))
}

func TestWhatAnswersOtherwiseAtItsSizeIsOpen(t *testing.T) {
	for size, want := range map[string][]string{"full": nil, "": {"pool-sizing"}, "quick": {"pool-6", "pool-sizing"}} {
		e := ledger.NewEvidence(planned(experiment.Sized[Config](size)), 1)
		var open []string
		for _, claim := range family.Claims {
			for _, p := range claim.Parts {
				if slices.ContainsFunc(p.Cases(e), func(c ledger.Case) bool { return c.Open != "" }) && !slices.Contains(open, claim.ID) {
					open = append(open, claim.ID)
				}
			}
		}
		if !slices.Equal(open, want) {
			t.Errorf("%q: %v are open, want %v", size, open, want)
		}
	}
}

func TestSizedPoolsAreOfferedBothPhases(t *testing.T) {
	for _, workers := range []int{0, 2} {
		load := []phase{{PerSecond: 200, Compute: slice}, {PerSecond: 200, Wait: time.Millisecond}}
		runs, err := playSized(t.Context(), sized{Workers: workers, Phases: load, TurnsMS: 1, Settle: 10 * time.Millisecond, Measure: 100 * time.Millisecond, Seed: 1})
		if err != nil || len(runs) != 2 || runs[0].Offered == 0 || runs[1].Offered == 0 {
			t.Errorf("%d workers: %+v, %v", workers, runs, err)
		}
	}
}
