package reuse

import (
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/results"
)

func TestMain(m *testing.M) { labtest.Main(m, Roles()) }

func TestTheDefaultsAreSoundAndNotScaled(t *testing.T) {
	if err := Defaults().check(); err != nil || Defaults().scaled() != "" {
		t.Errorf("defaults: %v, scaled %q", err, Defaults().scaled())
	}
	if err := Quick().check(); err != nil || Quick().scaled() == "" {
		t.Errorf("quick: %v, scaled %q", err, Quick().scaled())
	}
	for name, spoil := range map[string]func(*Config){
		"size":   func(c *Config) { c.Sizes = []int{0} },
		"sizes":  func(c *Config) { c.Sizes = nil },
		"rounds": func(c *Config) { c.Rounds = 1 },
		"bursts": func(c *Config) { c.Bursts = 1 },
	} {
		c := Defaults()
		spoil(&c)
		if c.check() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// planted makes the runs of three repeats: ours cost by times sync.Pool's.
func planted(by, hits, outlier float64) []results.Run {
	var runs []results.Run
	add := func(setup, load, pattern string, repeat int, extra map[string]float64) {
		runs = append(runs, results.Run{Setup: setup, Load: load, Pattern: pattern, Repeat: repeat, Elapsed: 1,
			Params: map[string]any{"goroutines": 2.0}, Extra: extra})
	}
	for n := range 3 {
		noise := 1 + float64(n)/100
		for _, name := range []string{Spillway, Buffers} {
			add(Bursts, burstLoad, name, n, map[string]float64{"hits": hits, "held": 1000 * by, "peak": 1000, "off_by": 0})
			add(Outlier, outlierLoad(false), name, n, map[string]float64{"rss": 1e7})
			add(Outlier, outlierLoad(true), name, n, map[string]float64{"rss": 1e7 * outlier * noise})
			add(Cycle, CycleLoad(1024, 2), name, n, map[string]float64{"ns": 20 * by * noise, "mallocs": by - 1})
			add(Cycle, CycleLoad(500_000, 2), name, n, map[string]float64{"ns": 20 * by * by * noise})
		}
		add(Cycle, CycleLoad(1024, 2), SyncPool, n, map[string]float64{"ns": 20, "behind": by * noise})
		add(Idle, burstLoad, Spillway, n, map[string]float64{"idle": 1000 * (by - 1), "peak": 1000})
	}
	return runs
}

func TestVerdictsOnEitherSideOfEachRule(t *testing.T) {
	verdicts := func(runs []results.Run) map[results.Verdict]int {
		n := map[results.Verdict]int{}
		for _, c := range (Classic{}).Judge(runs, 1) {
			n[c.Verdict]++
			if c.ID == "reuse-3" && c.Verdict != results.Inconclusive {
				t.Errorf("%s is decided without evidence: %s", c.ID, c.Why)
			}
		}
		return n
	}
	const claims = 13
	if n := verdicts(planted(1, 99.9, 1)); n[results.Holds] != claims-1 {
		t.Errorf("good runs: %v, want all but one to hold", n)
	}
	// Counting is exact in both.
	if n := verdicts(planted(2.5, 90, 1.5)); n[results.Fails] != claims-3 {
		t.Errorf("bad runs: %v, want all to fail but two counts and what tests prove", n)
	}
	if n := verdicts(nil); n[results.Holds]+n[results.Fails] != 0 {
		t.Errorf("no runs: %v", n)
	}
}

func TestEveryCellMeasures(t *testing.T) {
	c := Quick()
	c.Sizes, c.Rounds, c.Slice = []int{2000}, 3, 100*time.Microsecond
	c.Users, c.Bursts, c.On, c.Off, c.Idle = 20, 2, 10*time.Millisecond, time.Millisecond, time.Millisecond
	plan, err := Classic{c}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, cell := range plan.Cells {
		if key := cell.Setup + cell.Pattern; seen[key] {
			continue // one of each kind
		} else {
			seen[key] = true
		}
		run, err := cell.Run(t.Context(), experiment.Trial{})
		if err != nil || run.Offered == 0 || run.Elapsed <= 0 || len(run.Extra) == 0 {
			t.Errorf("%s: %+v, %v", cell.Label(), run, err)
		}
		if off := run.Extra["off_by"]; off != 0 && off != samples {
			t.Errorf("%s: the reported reuse is off by %v", cell.Label(), off)
		}
	}
	if want := 3*len(Names()) + 1; len(seen) != want || !slices.Contains(Names(), Buffers) {
		t.Errorf("%d kinds of cells, want %d", len(seen), want)
	}
}
