package routes

import (
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/ledger/ledgertest"
	"github.com/spillway-go/spillway/lab/results"
)

// runs are one run for every cell of the plan, on so many processors.
func runs(t *testing.T, c Config, gomaxprocs float64) (out []results.Run) {
	t.Helper()
	p, err := plan(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range p.Keys() {
		out = append(out, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Elapsed: 1, Params: map[string]any{"gomaxprocs": gomaxprocs}})
	}
	return out
}

func TestVerdictsFollowTheFigures(t *testing.T) {
	soak.WithoutRace(t)
	ledgertest.Check(t, Experiment.Family, runs(t, experiment.Sized[Config](""), 16))
}

func TestNothingIsPlannedTwice(t *testing.T) {
	seen := map[ledger.Key]bool{}
	for _, r := range runs(t, experiment.Sized[Config](""), 2) {
		k := ledger.KeyOf(&r)
		if seen[k] {
			t.Errorf("%s is planned twice", k)
		}
		seen[k] = true
	}
	for _, name := range Contest {
		for _, scenario := range Scenarios {
			if want := name != Huma || scenario != Form; seen[ledger.Key{Setup: contestOf + StdJSON, Load: scenario, Pattern: name}] != want {
				t.Errorf("%s, %s: planned %v", name, scenario, !want)
			}
		}
	}
}

// answers are those to one claim, by set-up.
func answers(id string, runs []results.Run) map[string]results.Answer {
	out := map[string]results.Answer{}
	for _, c := range Experiment.Judge(runs, results.Results{Seed: 1}) {
		for _, a := range c.Answers {
			if c.ID == id {
				out[a.Setup] = a
			}
		}
	}
	return out
}

func TestContentionNeedsProcessors(t *testing.T) {
	c := experiment.Sized[Config]("")
	few, many := answers("R4", runs(t, c, 2))[shapes[1].words], answers("R4", runs(t, c, 16))[shapes[1].words]
	if few.Verdict != results.NeedsHardware || !strings.Contains(few.Why, "GOMAXPROCS is 2") || many.Verdict != results.Inconclusive {
		t.Errorf("%s: %s, and with many processors %s", few.Verdict, few.Why, many.Verdict)
	}
}

func TestWithoutTheBuildThatCountsItSaysHowToGetIt(t *testing.T) {
	c := experiment.Sized[Config]("")
	c.OneBuild = true
	if got := answers("route-1", runs(t, c, 2))[JSONv2]; got.Verdict != results.Inconclusive || !strings.Contains(got.Why, "--one-build") {
		t.Errorf("%s: %s", got.Verdict, got.Why)
	}
}

func TestWithoutValgrindItSaysWhatToInstall(t *testing.T) {
	timed := slices.DeleteFunc(runs(t, experiment.Sized[Config](""), 2), func(r results.Run) bool { return r.Setup == ByCount })
	for _, c := range Experiment.Judge(timed, results.Results{}) {
		rests := slices.Contains([]string{"R1", "R2", "R3", "R5", "R6", "R8", "R9"}, c.ID)
		if open := strings.Contains(c.Why, "install Valgrind"); open != rests || open && c.Verdict != results.Inconclusive {
			t.Errorf("%s is %s: %s", c.ID, c.Verdict, c.Why)
		}
	}
}
