package overload

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/results"
)

// run makes a run of ten seconds with that many good answers.
func run(pattern string, load float64, repeat int, offered, ok uint64) results.Run {
	return results.Run{
		Setup: Setup, Load: LoadName(load), Pattern: pattern, Repeat: repeat, Elapsed: 10, Offered: offered,
		Params:   map[string]any{"load": load},
		Outcomes: []results.Outcome{{Kind: "ok", Count: ok, Latency: &histogram.Histogram{}}},
		Extra:    map[string]float64{"critical_offered": float64(offered / 5), "critical_ok": min(float64(offered/5), float64(ok))},
	}
}

func TestVerdictsByLoad(t *testing.T) {
	var runs []results.Run
	for n := range 3 {
		noise := uint64(10 * n)
		runs = append(runs,
			run(Spillway, .5, n, 1250, 1250), run(SemaphoreTry, .5, n, 1250, 1240),
			run(Spillway, 2, n, 5000, 2400+noise), run(SemaphoreTry, 2, n, 5000, 2480+noise), run(None, 2, n, 5000, 3),
			run(Spillway, 10, n, 25000, 1200+noise), run(SemaphoreTry, 10, n, 25000, 2490+noise),
		)
	}
	runs = append(runs, results.Run{Load: "2x", Pattern: None, Params: map[string]any{"load": 2.0}, Failed: "broken"})
	want := map[string]results.Verdict{
		"overload/goodput at 0.5x": results.Holds, "overload/goodput at 2x": results.Holds, "overload/goodput at 10x": results.Fails,
		"overload/critical at 0.5x": results.Holds, "overload/critical at 2x": results.Holds, "overload/critical at 10x": results.Fails,
		"overload/rival at 0.5x": results.Holds, "overload/rival at 2x": results.Holds, "overload/rival at 10x": results.Fails,
	}
	got := Classic{}.Judge(runs, 1)
	if len(got) != len(want) {
		t.Errorf("%d claims, want %d", len(got), len(want))
	}
	for _, c := range got {
		if v := want[c.ID+" "+c.Setup]; c.Verdict != v {
			t.Errorf("%s %s: %s (%s), want %s", c.ID, c.Setup, c.Verdict, c.Why, v)
		}
		if c.ID == "overload/rival" && !strings.Contains(c.Why, SemaphoreTry) {
			t.Errorf("%s names no rival: %s", c.Setup, c.Why)
		}
	}
}

func TestWithoutSpillwayThereIsNoVerdict(t *testing.T) {
	for _, c := range (Classic{}).Judge([]results.Run{run(None, 2, 0, 5000, 3)}, 1) {
		if c.Verdict != results.Inconclusive || !strings.Contains(c.Why, "was not measured") {
			t.Errorf("%s: %s, %s", c.ID, c.Verdict, c.Why)
		}
	}
}

func TestTheDefaultsAreSoundAndNotScaled(t *testing.T) {
	if err := Defaults().check(); err != nil || Defaults().scaled() != "" {
		t.Errorf("defaults: %v, scaled %q", err, Defaults().scaled())
	}
	if err := Quick().check(); err != nil || Quick().scaled() == "" {
		t.Errorf("quick: %v, scaled %q", err, Quick().scaled())
	}
}
