package pools

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
)

// timed is a run of a bout with one time for each round.
func timed(setup, pattern string, producers, workers, work float64, repeat int, ns ...float64) results.Run {
	return results.Run{
		Setup: setup, Load: fmt.Sprintf("%v→%v", producers, workers), Pattern: pattern, Repeat: repeat,
		Params: map[string]any{"producers": producers, "workers": workers, "work_us": work},
		Extra:  map[string]float64{"ns": usage.Median(ns)},
		Blocks: map[string][]float64{"ns": ns},
	}
}

func verdicts(runs []results.Run) map[string]results.OldClaim {
	out := map[string]results.OldClaim{}
	for _, c := range (Classic{}).Judge(runs, 1) {
		out[c.ID+" "+c.Setup] = c
	}
	return out
}

func TestRatiosAreTakenWithinARound(t *testing.T) {
	var runs []results.Run
	for n := range 3 {
		// The machine is ten times slower in the second round, for all contestants.
		runs = append(runs,
			timed("no-op jobs", Spillway, 1000, 2, 0, n, 40, 400, 42), timed("no-op jobs", Channel, 1000, 2, 0, n, 100, 1000, 100),
			timed("no-op jobs", Ants, 1000, 2, 0, n, 250, 2500, 260))
		twin := timed("no-op jobs", Spillway, 1000, 2, 0, n, 44, 440, 46.2)
		twin.Twin = true
		runs = append(runs, twin)
	}
	got := verdicts(runs)
	peer := got["pools/1-peer 1000 producers, 2 workers"]
	if peer.Verdict != results.Holds || peer.Measured != .4 || !strings.Contains(peer.Why, Channel) {
		t.Errorf("%+v", peer)
	}
	if peer.NoiseFloor < .099 || peer.NoiseFloor > .101 || !strings.Contains(peer.Why, "up to 10 %") {
		t.Errorf("the twin is 10 %% off, the floor %v: %s", peer.NoiseFloor, peer.Why)
	}
	library := got["pools/1-library 1000 producers, 2 workers"]
	if library.Verdict != results.Fails || !strings.Contains(library.Why, Ants) {
		t.Errorf("0.16 of the best library: %+v", library)
	}
}

func TestAllocationsAreExactButForWhatAStartLeaves(t *testing.T) {
	for allocs, want := range map[float64]results.Verdict{0: results.Holds, .004: results.Holds, .02: results.Fails, 1: results.Fails} {
		var runs []results.Run
		for n := range 3 {
			r := timed(setupRefuse, Spillway, 1, 2, 0, n, 10)
			r.Extra["allocs"] = allocs
			runs = append(runs, r)
		}
		if c := verdicts(runs)["pools/3-allocs 1 producer, 2 workers"]; c.Verdict != want {
			t.Errorf("%v allocations: %s, %s", allocs, c.Verdict, c.Why)
		}
	}
}

func TestMoreWorkersAreComparedWithFewer(t *testing.T) {
	var runs []results.Run
	for n := range 3 {
		for _, w := range []float64{2, 100, 1000} {
			runs = append(runs, timed("no-op jobs", Spillway, 1, w, 0, n, 30+w/100), timed("no-op jobs", Channel, 1, w, 0, n, 60))
		}
	}
	got := verdicts(runs)
	if c := got["pools/2-flat 1 producer, 1000 workers"]; c.Verdict != results.Fails || c.Measured < 1.3 || c.Measured > 1.35 {
		t.Errorf("40 ns after 30.02: %+v", c)
	}
	for id, want := range map[string]results.Verdict{
		"pools/2-peer 1 producer, 2 workers": results.Holds, "pools/2-peer 1 producer, 100 workers": results.Holds, "pools/2-wide 1 producer, 1000 workers": results.Fails,
	} {
		if got[id].Verdict != want {
			t.Errorf("%s: %+v", id, got[id])
		}
	}
}

func TestTheBurstIsHeldAgainstTheChannel(t *testing.T) {
	var runs []results.Run
	for n := range 3 {
		for pattern, cpu := range map[string]float64{Spillway: .8, Channel: 1} {
			runs = append(runs, results.Run{Setup: setupBurst, Load: "many", Pattern: pattern, Repeat: n, Extra: map[string]float64{
				"finish": 1.05, "cpu_seconds": cpu, "peak_rss": 1e7, "left": float64(n) / 2,
			}})
		}
	}
	got := verdicts(runs)
	for id, want := range map[string]results.Verdict{
		"pools/6-finish many": results.Holds, "pools/6-cpu many": results.Holds, "pools/6-memory many": results.Holds, "pools/6-left many": results.Fails,
	} {
		if got[id].Verdict != want {
			t.Errorf("%s: %+v", id, got[id])
		}
	}
}

func TestSizingIsHeldAgainstTheBestFixedSize(t *testing.T) {
	var runs []results.Run
	for n := range 3 {
		for pattern, ok := range map[string]uint64{Spillway: 70, "fixed 2": 100, "fixed 32": 5} {
			runs = append(runs, results.Run{
				Setup: setupSizing("mixed"), Load: phaseNames[1], Pattern: pattern, Repeat: n, Elapsed: 1, Offered: 200,
				Outcomes: []results.Outcome{{Kind: "ok", Count: ok, Latency: &histogram.Histogram{}}},
			})
		}
	}
	c := verdicts(runs)["pools/sizing mixed, after the change"]
	if c.Verdict != results.Fails || c.Measured != 70 || !strings.Contains(c.Why, "fixed 2") {
		t.Errorf("%+v", c)
	}
}

func TestWithoutSpillwayThereIsNoVerdict(t *testing.T) {
	runs := []results.Run{
		timed("no-op jobs", Channel, 1000, 2, 0, 0, 40), timed(setupRefuse, Channel, 1, 2, 0, 0, 8), timed(setupCall, Pond, 1, 2, 0, 0, 800),
		{Setup: setupBurst, Load: "many", Pattern: Spillway, Killed: "above its cap"}, {Setup: setupBurst, Load: "many", Pattern: Channel},
	}
	for id, c := range verdicts(runs) {
		if c.Verdict != results.Inconclusive {
			t.Errorf("%s: %s, %s", id, c.Verdict, c.Why)
		}
	}
}
