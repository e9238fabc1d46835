package patterns

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// inScene plays a scenario in virtual time: a machine on which nothing but the store and
// the waits takes time.
func inScene(t *testing.T, setup, contestant string, set func(*Config)) (run results.Run) {
	t.Helper()
	c := experiment.Sized[Config]("")
	c.ErrorRate = 0
	set(&c)
	synctest.Test(t, func(t *testing.T) {
		var err error
		if run, err = played(t.Context(), scene{Config: c, Scenario: setup, Contestant: contestant, Seed: 1}); err != nil {
			t.Error(err)
		}
	})
	return run
}

func TestOnlyWithoutABoundAreConnectionsTooFew(t *testing.T) {
	all := func(c *Config) { c.Users = 2_000 }
	for contestant, want := range map[string]struct{ without, answered, refused float64 }{
		Naive: {1_900, 100, 0}, Queueing: {0, 2_000, 0}, WorkerPool: {0, 0, 0}, Ours: {0, 0, 0},
	} {
		got := inScene(t, Crowd, contestant, all).Extra
		if got[withoutConnection.Key] != want.without {
			t.Errorf("%s: %v", contestant, got)
		}
		switch contestant {
		case Naive, Queueing:
			if got["answered"] != want.answered || got["refused"] != want.refused {
				t.Errorf("%s: %v", contestant, got)
			}
		default: // 20 workers, 100 places, and some that found room within 100 ms
			if got["answered"] < 120 || got["answered"] > 170 || got["answered"]+got["refused"] != 2_000 || got["longest_wait_ns"] != 0 {
				t.Errorf("%s: %v", contestant, got)
			}
		}
	}
}

func TestAWaitOfMoreThanTenSecondsCountsAsNoConnection(t *testing.T) {
	got := inScene(t, Crowd, Queueing, func(c *Config) { c.Users, c.MinLatency, c.MaxLatency = 2_000, time.Second, time.Second }).Extra
	if got[withoutConnection.Key] != 900 || got["longest_wait_ns"] != 19e9 { // those of the seconds 11 to 19
		t.Errorf("%v", got)
	}
}

func TestWhenTheQueryStallsOnlyNaiveGrows(t *testing.T) {
	for contestant, growing := range map[string]bool{Naive: true, WorkerPool: false, Ours: false} {
		run := inScene(t, Stall, contestant, func(*Config) {})
		grew, most := run.Extra[growth.Key], run.Extra[mostGoroutines.Key]
		if growing && (grew < .99 || grew > 1.01 || most < 1_300 || most > 1_340) || !growing && (grew != 0 || most != 20) {
			t.Errorf("%s: %v for each request, at most %v", contestant, grew, most)
		}
		if n := len(run.Series); n < 40 || run.Series[n-1].Goroutines == 0 {
			t.Errorf("%s: %d points", contestant, n)
		}
	}
}

func TestGrowthNeedsTimeToBeSeen(t *testing.T) {
	for name, c := range map[string]struct {
		at      []float64
		arrived []float64
		figures int
	}{"nothing": {nil, nil, 0}, "too short": {[]float64{.1, .5}, []float64{1, 2}, 1}, "one look": {[]float64{.1, .9}, []float64{1, 2}, 1}, "nobody came": {[]float64{.8, .9}, []float64{2, 2}, 1}, "enough": {[]float64{.8, .9}, []float64{2, 3}, 2}} {
		run := results.Run{Extra: map[string]float64{}}
		var seen []holding
		for i, at := range c.at {
			seen = append(seen, holding{at, c.arrived[i], 5 * i})
		}
		addGrowth(&run, seen, .7, math.Inf(1))
		if len(run.Extra) != c.figures {
			t.Errorf("%s: %v", name, run.Extra)
		}
	}
}

func TestOnlyBesideNaiveTheNeighbourStarves(t *testing.T) {
	alone := inScene(t, Neighbour, Nobody, func(*Config) {}).Extra[neighbourGood.Key]
	if alone < 250 || alone > 280 {
		t.Errorf("alone %v a second, Little's law says 267", alone)
	}
	for contestant, share := range map[string][2]float64{Naive: {0, .05}, WorkerPool: {.95, 1.05}, Ours: {.95, 1.05}} {
		if got := inScene(t, Neighbour, contestant, func(*Config) {}).Extra[neighbourGood.Key] / alone; got < share[0] || got > share[1] {
			t.Errorf("beside %s: %.3f of it", contestant, got)
		}
	}
}

// Whether a worker goes on after the shutdown is a matter of chance: each takes one more
// request on average.
func TestThePublishedShutdownLosesWhatIsQueued(t *testing.T) {
	for contestant, lost := range map[string][2]float64{WorkerPool: {40, 99}, Ours: {0, 0}} {
		got := inScene(t, Shutdown, contestant, func(*Config) {}).Extra
		if got[acceptedRequests.Key] != 120 || got[lostRequests.Key] < lost[0] || got[lostRequests.Key] > lost[1] {
			t.Errorf("%s: %v", contestant, got)
		}
	}
}

func TestAnErrorIsAnAnswer(t *testing.T) {
	if got := inScene(t, Shutdown, Ours, func(c *Config) { c.ErrorRate = .5 }).Extra; got[lostRequests.Key] != 0 {
		t.Errorf("%v", got)
	}
}

func TestLongLivedConnectionsKeepAPoolsWorkers(t *testing.T) {
	for contestant, want := range map[string]float64{Naive: shortRequests, WorkerPool: 0, Ours: 0} {
		if got := inScene(t, LongLived, contestant, func(*Config) {}).Extra; got[shortAnswered.Key] != want {
			t.Errorf("%s: %v", contestant, got)
		}
	}
}

func TestScenesThatWaitRunBesideTheLongestLoad(t *testing.T) {
	plan, err := Plan(experiment.Sized[Config](""))
	if err != nil {
		t.Fatal(err)
	}
	scenes := 0
	for _, c := range plan.Cells {
		if keyOf(c.Setup, c.Pattern).Load == c.Load && c.Load != "" {
			if scenes++; c.Beside != besideSustained || c.Expect > 31*time.Second {
				t.Errorf("%s: beside %q, %v", c.Key(), c.Beside, c.Expect)
			}
		}
	}
	if scenes != 17 { // of them a twin
		t.Errorf("%d scenes", scenes)
	}
	if all := plan.Expect(5); all > 300*time.Second {
		t.Errorf("a session takes %v", all)
	}
}

func TestOnlyTheChosenContestantsPlay(t *testing.T) {
	for _, c := range []struct {
		chosen string
		want   int
	}{{Naive, 2 + 1 + 3 + 1}, {WorkerPool, 2 + 2 + 4 + 2 + 2}, {Limiter, 0}} {
		config := experiment.Sized[Config]("")
		config.Contestant = []string{c.chosen}
		if got := config.scenes(false); len(got) != c.want {
			var keys []ledger.Key
			for _, cell := range got {
				keys = append(keys, cell.Key())
			}
			t.Errorf("%s: %d scenes: %v", c.chosen, len(got), keys)
		}
	}
}

func TestAnUnknownScenarioIsAnError(t *testing.T) {
	if _, err := played(t.Context(), scene{Scenario: "a flood"}); err == nil {
		t.Error("no error")
	}
}
