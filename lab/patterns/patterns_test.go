package patterns

import (
	"cmp"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/ledger/planted"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/usage"
)

func TestMain(m *testing.M) { labtest.Main(m, Roles()) }

// made is a run of each cell, at the size given.
func made(c Config) (runs []results.Run) {
	run := func(k ledger.Key, params map[string]any) {
		runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Elapsed: 1, Params: params})
	}
	for _, k := range c.keys() {
		run(k, c.job(k, 0).Params())
	}
	for _, s := range c.series() {
		for i, k := range c.group(s, nil).Keys {
			run(k, map[string]any{"gomaxprocs": runtime.GOMAXPROCS(0), "size": s.points[i].at})
		}
	}
	for _, k := range append([]ledger.Key{stalledKey}, fillings[0].key(), fillings[1].key(), fillings[2].key()) {
		run(k, scene{Config: c}.params())
	}
	scenes := c.scenes(false)
	if c.Postgres != "" {
		scenes = append(scenes, c.scenes(true)...)
	}
	for _, cell := range scenes {
		run(cell.Key(), scene{Config: c}.params())
	}
	return runs
}

func TestEveryRowDecidesWhatIsPlanted(t *testing.T) {
	planted.Check(t, Experiment.Family, made(experiment.Sized[Config]("full")))
}

func TestEveryRowDecidesWhatIsPlantedOnARealDatabase(t *testing.T) {
	f := Experiment.Family
	f.Claims = slices.DeleteFunc(slices.Clone(f.Claims), func(c ledger.Claim) bool { return c.ID < "H6" }) // those that ask none
	planted.Check(t, f, made(onPostgres("full")))
}

func TestClaimsAboutTheSizesAreOpenAtOtherSizes(t *testing.T) {
	own := experiment.Sized[Config]("")
	own.Workers = 3
	for _, c := range []struct {
		config       Config
		open, beside bool
	}{{experiment.Sized[Config]("full"), false, false}, {experiment.Sized[Config](""), false, true}, {experiment.Sized[Config]("quick"), true, true}, {own, true, true}} {
		e := ledger.NewEvidence(made(c.config), 1)
		if got := otherSize(e, Shape, Sustained) != ""; got != c.open {
			t.Errorf("the published shape with %+v: open %v", c.config, got)
		}
		if got := otherSize(e, Real, Sustained) != ""; got != c.beside {
			t.Errorf("ours with %+v: open %v", c.config, got)
		}
	}
}

func TestPublishedSizesAndWhatIsBesideWhat(t *testing.T) {
	published := map[string][2]int{Low: {1_000, 100}, High: {10_000, 1_000}, Sustained: {50_000, 500}}
	beside := map[string][]string{}
	plan, err := Plan(experiment.Sized[Config](""))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range plan.Cells {
		if c.Setup != Shape || c.Twin {
			continue
		}
		group := cmp.Or(c.Beside, c.Load+" alone")
		beside[group] = append(beside[group], c.Pattern)
		for _, size := range []string{"", "full"} {
			j := experiment.Sized[Config](size).job(c.Key(), 0)
			if want, ok := published[c.Load]; ok && (j.Requests != want[0] || j.Clients != want[1] || j.Workers != 20 || j.QueueSize != 100) {
				t.Errorf("%s: %+v", c.Key(), j)
			}
		}
	}
	pools := []string{WorkerPool, Optimized, Warm}
	want := map[string][]string{
		"low alone": {Naive}, "high alone": {Naive},
		"pools, low and high": slices.Concat(pools, pools), "pools, sustained": slices.Concat([]string{Naive}, pools), Brisk + " alone": {WorkerPool, Optimized, Warm},
		"short ones": {Uncleared, Warm, Naive},
	}
	if !reflect.DeepEqual(beside, want) {
		t.Errorf("side by side: %v", beside)
	}
	if len(plan.Demos) != 3 {
		t.Errorf("%d demonstrations", len(plan.Demos))
	}
}

func TestSettingsThatCannotBeAreRefused(t *testing.T) {
	for want, set := range map[string]func(*Config){
		"queue-size is -1: want at least 0": func(c *Config) { c.QueueSize = -1 }, "swap them": func(c *Config) { c.MinLatency = time.Hour },
		"error-rate is 1: want 0 to 0.999": func(c *Config) { c.ErrorRate = 1 }, "patients is 0: want 1 to 999999": func(c *Config) { c.Patients = 0 },
		"patients is 1000000": func(c *Config) { c.Patients = 1_000_000 }, "queue-wait is -1ns: want at least 0s": func(c *Config) { c.QueueWait = -1 },
		"sustained is 0": func(c *Config) { c.Sustained = 0 }, "unknown contestant \"fast\"": func(c *Config) { c.Contestant = []string{"fast"} },
	} {
		c := experiment.Sized[Config]("")
		set(&c)
		if _, _, err := (experiment.Session{}).Run(t.Context(), Experiment, &c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The cells that need no patient API, as processes.
func TestThePublishedShapeIsAContestant(t *testing.T) {
	c := experiment.Sized[Config]("quick")
	c.Requests, c.Clients, c.MinLatency, c.MaxLatency = 40, 4, 0, time.Millisecond
	plan, err := Plan(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, planned := range plan.Cells {
		if planned.Setup != Shape {
			continue
		}
		run, err := planned.Run(t.Context(), experiment.Trial{Seed: 1})
		if err != nil || run.Process.PeakGoroutines == 0 || planned.Load != Parked && (run.Offered != 40 || !(answers(&run) > 0)) {
			t.Errorf("%s: %+v, %v", planned.Key(), run, err)
		}
	}
}

func lawOf(run results.Run) float64 {
	return littlesLaw(ledger.NewEvidence([]results.Run{run}, 1), ledger.KeyOf(&run))
}

func TestLittlesLaw(t *testing.T) {
	if got := lawOf(results.Run{Params: publishedJob(High, WorkerPool).Params()}); math.Abs(got-253.33) > 0.01 {
		t.Errorf("20 workers × 0.95 ÷ 75 ms is %v", got)
	}
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

func TestTheDemonstrationsShowTheFaultAndOursHasNone(t *testing.T) {
	if usage.Race {
		t.Skip("the specimens are data races by design: the detector would end them before the fault shows")
	}
	for _, d := range demonstrations.Demos() {
		demo, err := d.Run(t.Context())
		if err != nil {
			t.Errorf("%s: %v", d.ID, err)
			continue
		}
		counts := map[string]float64{}
		for _, c := range demo.Counts {
			counts[c.Name] = c.N
		}
		var good bool
		switch d.ID {
		case "early-return":
			good = counts["empty 200, as printed"] > 0 && counts["empty 200, ours"] == 0
		case "shared-reply":
			good = counts["empty, as printed"] > 0 && counts["empty, ours"]+counts["another patient, ours"] == 0
		case "late-retry-after":
			good = counts["without Retry-After, as printed"] == 500 && counts["refused, ours"] > 0 && counts["without Retry-After, ours"] == 0
		}
		if !good {
			t.Errorf("%s: %v: %s", d.ID, counts, demo.Outcome)
		}
	}
}
