package routes

import (
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/ledger/ledgertest"
	"github.com/spillway-go/spillway/lab/results"
)

// runs are one run for every cell of the plan, on so many processors.
func runs(c Config, gomaxprocs float64) (out []results.Run) {
	out = labtest.Planned(plan(c))
	for i := range out {
		out[i].Params = map[string]any{"gomaxprocs": gomaxprocs}
	}
	return out
}

func TestVerdictsFollowTheFigures(t *testing.T) {
	soak.WithoutRace(t)
	ledgertest.Check(t, Experiment.Family, runs(experiment.Sized[Config](""), 16))
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
	few, many := answers("R4", runs(c, 2))[shapes[1].words], answers("R4", runs(c, 16))[shapes[1].words]
	if few.Verdict != results.NeedsHardware || !strings.Contains(few.Why, "GOMAXPROCS is 2") || many.Verdict != results.Inconclusive {
		t.Errorf("%s: %s, and with many processors %s", few.Verdict, few.Why, many.Verdict)
	}
}

func TestWithoutTheBuildThatCountsItSaysHowToGetIt(t *testing.T) {
	c := experiment.Sized[Config]("")
	c.OneBuild = true
	if got := answers("route-1", runs(c, 2))[JSONv2]; got.Verdict != results.Inconclusive || !strings.Contains(got.Why, "--one-build") {
		t.Errorf("%s: %s", got.Verdict, got.Why)
	}
}

func TestWithoutValgrindItSaysWhatToInstall(t *testing.T) {
	timed := slices.DeleteFunc(runs(experiment.Sized[Config](""), 2), func(r results.Run) bool { return r.Setup == ByCount })
	for _, c := range Experiment.Judge(timed, results.Results{}) {
		rests := slices.Contains([]string{"R1", "R2", "R3", "R5", "R6", "R8", "R9"}, c.ID)
		if open := strings.Contains(c.Why, "install Valgrind"); open != rests || open && c.Verdict != results.Inconclusive {
			t.Errorf("%s is %s: %s", c.ID, c.Verdict, c.Why)
		}
	}
}
