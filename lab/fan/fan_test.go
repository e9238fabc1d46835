package fan

import (
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/ledger/ledgertest"
	"github.com/spillway-go/spillway/load/usage"
)

func TestEveryRowAnswersByItsFigures(t *testing.T) {
	c := experiment.Sized[Config]("")
	c.Branch = []time.Duration{time.Microsecond, time.Millisecond} // few cells: figures are made up at random
	c.Sources = []int{2}
	ledgertest.Check(t, Experiment.Family, labtest.Planned(plan(c)))
}

func TestThePlan(t *testing.T) {
	for _, size := range []string{"", "quick", "full"} {
		p, err := plan(experiment.Sized[Config](size))
		if err != nil {
			t.Fatal(err)
		}
		keys := p.Keys()
		for _, k := range []ledger.Key{
			{Setup: Virtual, Load: "n = 2, 50/50 ms", Pattern: AsPrinted}, {Setup: Sleeping, Load: "n = 2, 50/50 ms", Pattern: Corrected, Twin: true},
			{Setup: Computing, Load: "n = 8, 500/100 µs", Pattern: ErrGroup}, {Setup: OneProc, Load: "n = 8, 5/1 µs", Pattern: Conc},
			{Setup: sized(gridPrefix, Computing, 8), Load: "20 µs", Pattern: Spillway, Twin: true}, {Setup: allocSetup, Load: "n = 8", Pattern: InParallel},
			{Setup: sized(evenPrefix, Yielding, 8), Load: evenLoad, Pattern: Corrected, Twin: true}, nest(Sequential), changed, hedged,
		} {
			if !slices.Contains(keys, k) && !(usage.Race && k.Pattern == AsPrinted) {
				t.Errorf("%q: no %s", size, k)
			}
		}
	}
}

func TestRatiosAreTakenWithinARound(t *testing.T) {
	l := Lookups{Kind: Computing, Contestants: []string{Spillway, Sequential}, Tables: []Table{{Sources: 2}}}
	// The machine is three times slower in the second round, and has one processor.
	runs := l.runs([][]Figures{{{"ns": {100, 330, 102}}, {"ns": {200, 600, 200}, "free": {2, 1, 1.9}}}})
	if got := runs[1].Extra["behind"]; got != .51 {
		t.Errorf("behind by %v, want 0.51", got)
	}
	if got := runs[1].Blocks["ns_free"]; !slices.Equal(got, []float64{200, 200}) {
		t.Errorf("with a processor free: %v", got)
	}
	if _, there := runs[0].Blocks["ns_free"]; there {
		t.Error("a time with a processor free where none was looked for")
	}
}

func TestBreakEvenLiesBetweenTwoDurations(t *testing.T) {
	for name, c := range map[string]struct {
		curve []point
		at    float64
		known bool
	}{
		"between":         {[]point{{1, 4}, {10, 2}, {1000, .5}}, 100, true},
		"never":           {[]point{{1, 4}, {1000, 1.01}}, 0, false},
		"always":          {[]point{{1, .9}, {1000, .5}}, 0, false},
		"a tie is none":   {[]point{{1, 4}, {10, 1.01}, {1000, .99}}, 0, false},
		"after a tie":     {[]point{{1, 4}, {10, .99}, {1000, .5}}, 10, true},
		"twice: for good": {[]point{{1, .9}, {10, 2}, {1000, .5}}, 100, true},
		"no point":        {nil, 0, false},
	} {
		if at, known := breakEven(c.curve); known != c.known || known && (at < c.at*.999 || at > c.at*1.001) {
			t.Errorf("%s: %v, %v, want %v, %v", name, at, known, c.at, c.known)
		}
	}
}
