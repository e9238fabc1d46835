package patterns

import (
	"context"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/ledger/ledgertest"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/usage"
)

func TestMain(m *testing.M) { labtest.Main(m, Roles()) }

// onPostgres is the configuration of a size with a database that nobody asks.
func onPostgres(size string) Config {
	c := experiment.Sized[Config](size)
	c.Postgres = "postgres://postgres@127.0.0.1:1/postgres"
	return c
}

// made is a run of each cell, at the size given.
func made(t *testing.T, c Config) (runs []results.Run) {
	t.Helper()
	plan, err := Plan(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range plan.Keys() {
		params := c.params()
		if _, load := sizes[k.Load]; load {
			params = c.job(k, 0).Params()
		}
		params["gomaxprocs"] = runtime.GOMAXPROCS(0)
		runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Elapsed: 1, Params: params})
	}
	return runs
}

// claimsOf judges a run of each cell.
func claimsOf(t *testing.T, c Config) map[string]results.Claim {
	t.Helper()
	out := map[string]results.Claim{}
	for _, claim := range Experiment.Family.Judge(ledger.NewEvidence(made(t, c), 1)) {
		out[claim.ID] = claim
	}
	return out
}

func TestEveryRowDecidesWhatIsPlanted(t *testing.T) {
	ledgertest.Check(t, Experiment.Family, made(t, experiment.Sized[Config]("")))
}

func TestEveryRowDecidesWhatIsPlantedOnPostgres(t *testing.T) {
	f := Experiment.Family
	f.Claims = slices.DeleteFunc(slices.Clone(f.Claims), func(c ledger.Claim) bool { return c.ID < "H6" }) // those that ask none
	ledgertest.Check(t, f, made(t, onPostgres("")))
}

func TestClaimsAboutTheSizesAreOpenAtOtherSizes(t *testing.T) {
	own := experiment.Sized[Config]("")
	own.Workers = 3
	for _, c := range []struct {
		config Config
		open   bool
	}{{experiment.Sized[Config](""), false}, {experiment.Sized[Config]("quick"), true}, {own, true}} {
		e := ledger.NewEvidence(made(t, c.config), 1)
		for setup, load := range map[string]string{Shape: Sustained, Real: High} {
			if got := otherSize(e, setup, load) != ""; got != c.open {
				t.Errorf("%s with %+v: open %v", setup, c.config, got)
			}
		}
	}
}

func TestSettingsThatCannotBeAreRefused(t *testing.T) {
	for want, set := range map[string]func(*Config){
		"queue-size is -1: want at least 0": func(c *Config) { c.QueueSize = -1 }, "swap them": func(c *Config) { c.MinLatency = time.Hour },
		"error-rate is 1: want 0 to 0.999": func(c *Config) { c.ErrorRate = 1 }, "patients is 1000000": func(c *Config) { c.Patients = 1_000_000 },
		"unknown contestant \"fast\"": func(c *Config) { c.Contestant = []string{"fast"} }, `unknown scenario "flood"`: func(c *Config) { c.Scenario = []string{"flood"} },
		"name its server with --postgres": func(c *Config) { c.Postgres, c.Scenario = "", []string{"crowd"} },
		"postgres is not a URL":           func(c *Config) { c.Postgres = "host=localhost password=sesame" },
		"this session may have":           func(c *Config) { c.Clients = 100_000_000 },
	} {
		c := onPostgres("")
		set(&c)
		if _, _, err := (experiment.Session{}).Run(t.Context(), Experiment, &c); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The cells that need no patient API, as processes.
func TestThePublishedShapeIsAContestant(t *testing.T) {
	c := experiment.Sized[Config]("quick")
	c.Requests, c.Clients, c.MinLatency, c.MaxLatency, c.Users = 40, 4, 0, time.Millisecond, 200
	plan, err := Plan(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, planned := range plan.Cells {
		k := planned.Key()
		if k.Setup == Real || k.Setup == NeighboursAlike || k.Setup == Filled {
			continue
		}
		run, err := planned.Run(t.Context(), experiment.Trial{Seed: 1})
		switch _, load := sizes[k.Load]; {
		case err != nil:
			t.Errorf("%s: %v", k, err)
		case k == stalledKey(Naive):
			if run.Extra[stalledGoroutines.Key] != 200 || !(run.Extra[stalledMemory.Key] > 0) {
				t.Errorf("%s: %v", k, run.Extra)
			}
		case k == stalledKey(WorkerPool):
			if run.Extra[stalledGoroutines.Key] != 20 {
				t.Errorf("%s: %v", k, run.Extra)
			}
		case load && (run.Process.PeakGoroutines == 0 || k.Load != Parked && k.Load != Looking && (run.Offered != 40 || !(answers(&run) > 0))):
			t.Errorf("%s: %+v", k, run)
		}
	}
}

// lawOf is what Little's law says of a run.
func lawOf(run results.Run) float64 {
	return littlesLaw(ledger.NewEvidence([]results.Run{run}, 1), ledger.KeyOf(&run))
}

func TestH10NeedsMoreThanAThousandASecond(t *testing.T) {
	run := results.Run{Elapsed: 1, Offered: 1000, Process: results.Process{Usage: usage.Usage{Mallocs: 10_010}}}
	if x := allocations.Value(&run); !math.IsNaN(x) {
		t.Errorf("at 1,000 a second: %v", x)
	}
	run.Offered++
	if x := allocations.Value(&run); x != 10 {
		t.Errorf("above: %v", x)
	}
	if x := allocated.Value(&run); !math.IsNaN(x) {
		t.Errorf("bytes that nobody counted: %v", x)
	}
}

func TestAPoolIsFilledWithoutCallers(t *testing.T) {
	figures, err := filled(t.Context(), filling{Workers: 5, Queue: 20, Pools: 3})
	if _, measured := figures[filledMemory.Key]; err != nil || !measured {
		t.Errorf("%v, %v", figures, err)
	}
}

// ofAccepted plays the contestant in virtual time.
func ofAccepted(t *testing.T, setup, contestant string, errorRate float64) map[string]float64 {
	t.Helper()
	c := experiment.Sized[Config]("")
	c.ErrorRate, c.Workers = errorRate, someWorkers
	return inVirtualTime(t, func(ctx context.Context) (map[string]float64, error) {
		return playAccepted(ctx, Job{Config: c, Load: setup, Pattern: contestant, Seed: 1})
	})
}

// Whether a worker goes on after the shutdown is a matter of chance: each takes one more
// request on average.
func TestThePublishedShutdownLosesWhatIsQueued(t *testing.T) {
	for contestant, lost := range map[string][2]float64{WorkerPool: {40, 99}, Ours: {0, 0}} {
		got := ofAccepted(t, Shutdown, contestant, 0)
		if got[acceptedRequests.Key] != 120 || got[lostRequests.Key] < lost[0] || got[lostRequests.Key] > lost[1] {
			t.Errorf("%s: %v", contestant, got)
		}
	}
	if got := ofAccepted(t, Shutdown, Ours, .5); got[lostRequests.Key] != 0 {
		t.Errorf("an error is an answer: %v", got)
	}
}

func TestLongLivedConnectionsKeepAPoolsWorkers(t *testing.T) {
	for contestant, want := range map[string]float64{Naive: shortRequests, WorkerPool: 0, Ours: 0} {
		if got := ofAccepted(t, LongLived, contestant, 0); got[shortAnswered.Key] != want {
			t.Errorf("%s: %v", contestant, got)
		}
	}
}
