package bouts_test

import (
	"slices"
	"testing"

	"github.com/spillway-go/spillway/lab/bouts"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/turns"
)

// costly allocates so many objects for a unit of work.
type costly struct {
	Name    string
	Objects int
}

var escaped *[64]byte

func (c costly) player() (turns.Player, error) {
	return turns.Player{Name: c.Name, Block: func(n int) {
		for range n * c.Objects {
			escaped = new([64]byte)
		}
	}}, nil
}

func TestMain(m *testing.M) {
	labtest.Main(m, map[string]contestant.Role{"costly": turns.Role(nil, costly.player)})
}

func TestATableIsPlayedNetAndComparedWithRivals(t *testing.T) {
	table := bouts.Table[costly]{
		Config: turns.Config{Rounds: 3, Least: 1000}, Spec: contestant.Spec{Role: "costly"}, Net: "nothing", Versus: "allocs",
		Figures: experiment.Figures{"allocs": func(r turns.Reading) float64 { return float64(r.Mallocs / 1000 * 1000) }}, // but for the runtime's own
	}
	key := ledger.Key{Setup: "s", Load: "l"}
	for _, c := range []costly{{"spillway", 5}, {"rival", 3}, {"nothing", 1}} {
		table.Add(key.By(c.Name), c.Name == "spillway", c)
	}
	var plan experiment.Plan
	table.To(&plan)
	group := plan.Groups[0]
	if want := append(key.By("spillway").AndTwin(true), key.By("rival"), key.By("nothing")); !slices.Equal(group.Keys, want) {
		t.Errorf("cells %v, want %v", group.Keys, want)
	}
	runs, err := group.Run(t.Context(), experiment.Trial{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []map[string]float64{{"allocs": 4}, {"allocs": 4}, {"allocs": 2, "behind": 2}, {"allocs": 1}} {
		for _, figure := range []string{"allocs", "behind"} {
			if got := runs[i].Extra[figure]; got != want[figure] || want[figure] > 0 && len(runs[i].Blocks[figure]) != 3 {
				t.Errorf("%s: %s %v, want %v", group.Keys[i], figure, runs[i].Blocks[figure], want[figure])
			}
		}
	}
}
