//go:build !race

package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/pages"
	"github.com/spillway-go/spillway/internal/sim"
	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/limit"
)

// The race detector makes this test ten times as slow. It finds nothing, because a run is one
// goroutine.

// The figures of the examples in docs/adr/0005 and 0006 are the worst and the best of five seeds. The
// first changes of the limit are printed:
//
//	go test ./internal/sim -v -run TestWalks
func TestWalks(t *testing.T) {
	soak.WithoutRace(t)
	var table strings.Builder
	for _, of := range []struct {
		load float64
		p    spillway.Priority
		row  string
	}{{.4, spillway.Normal, "40 %"}, {.8, spillway.Normal, "80 %"}, {1.5, spillway.Normal, "150 %"}, {1.5, spillway.High, "150 %, lookups `High`"}} {
		s := sim.Scenario{Duration: 240 * sec, Warmup: 60 * sec, Backend: sim.NWay(32), Classes: kinds(.9, 20*ms, 1., sec, .1, 2*sec, 1., 10*sec)}
		s.Classes[0].Priority = of.p
		s.Arrivals = sim.Poisson(of.load * s.Capacity())
		kinds := walk(t, s, 32)
		fmt.Fprintf(&table, "| %s | lookups | %s |\n| | reports | %s |\n", of.row, kinds[0], kinds[1])
	}
	pages.Says(t, "docs/adr/0006-a-free-slot-is-given.md", table.String())
	share := map[string]float64{}
	for _, r := range inArena(t, arenaHidden(), "burst3s,wave", 3, "known") {
		share[r.name] = median(r.rel)
	}
	if share["burst3s/nway"] == 0 || share["wave/nway"] == 0 {
		t.Errorf("the bursts are gone: %v", share)
	}
	pages.Says(t, "docs/adr/0006-a-free-slot-is-given.md", fmt.Sprintf("with the right number %.3f of the oracle in bursts of three seconds, %.3f in waves", share["burst3s/nway"], share["wave/nway"]))
	s := sim.Scenario{Duration: 180 * sec, Warmup: 60 * sec, Backend: sim.Degrading(60, 0), Classes: kinds(1., 20*ms, .3, sec)}
	s.Arrivals = sim.Poisson(.1 * s.Capacity())
	for at := s.Warmup; at < s.Duration; at += 300 * ms {
		s.Changes = append(s.Changes, sim.Change{At: at, Speed: 1e-6}, sim.Change{At: at + 250*ms, Speed: 1})
	}
	pages.Says(t, "docs/adr/0005-every-change-of-the-limit-is-a-trial.md", "|---|---|---|\n| "+walk(t, s, 60)[0]+" |")
}

// walk simulates a scenario without a limit, with a fixed limit of the right size, and with the
// adaptive limiter. It returns what is answered of each kind, and how soon half of it is.
func walk(t *testing.T, s sim.Scenario, right int) []string {
	t.Helper()
	var law *changing
	kinds := make([][]string, len(s.Classes))
	for _, policy := range []sim.Policy{
		sim.Unlimited(),
		sim.Limiter(func() limit.Law { return limit.NewFixed(right) }, sim.Settings{}),
		sim.Limiter(func() limit.Law { law = &changing{adaptiveLaw: limit.NewAdaptive().(adaptiveLaw)}; return law }, sim.Settings{}),
	} {
		s.Policy = policy
		answered, p50 := make([][]float64, len(s.Classes)), make([][]float64, len(s.Classes))
		for seed := uint64(5); seed > 0; seed-- { // the log kept is that of seed 1, the last one
			s.Seed = seed
			for i, kind := range run(t, s).Classes {
				answered[i] = append(answered[i], kind.Served())
				p50[i] = append(p50[i], float64(kind.Latency.Quantile(.5))/1e9)
			}
		}
		for i := range kinds {
			kinds[i] = append(kinds[i], fmt.Sprintf("%s (%s s)", spread(answered[i]), spread(p50[i])))
		}
	}
	t.Logf("of the first seed: %q", law.log[:min(len(law.log), 8)])
	rows := make([]string, len(kinds))
	for i, k := range kinds {
		rows[i] = strings.Join(k, " | ")
	}
	return rows
}

// spread is the range of some figures, or one if they hardly differ.
func spread(v []float64) string {
	low, high := fmt.Sprintf("%.2f", slices.Min(v)), fmt.Sprintf("%.2f", slices.Max(v))
	if low == high {
		return low
	}
	return low + " – " + high
}
