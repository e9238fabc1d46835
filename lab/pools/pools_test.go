package pools

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/ledger/planted"
	"github.com/spillway-go/spillway/lab/results"
)

// planned is a run of every cell.
func planned(t *testing.T, c Config) (runs []results.Run) {
	p, err := plan(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range p.Keys() {
		runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Elapsed: 1, Params: map[string]any{
			"gomaxprocs": float64(runtime.GOMAXPROCS(0)), "settle_seconds": c.Settle.Seconds(),
		}})
	}
	return runs
}

func TestVerdictsFollowTheFigures(t *testing.T) {
	soak.WithoutRace(t)
	planted.Check(t, Experiment.Family, planned(t, experiment.Sized[Config]("full")))
}

func TestWhatAnswersOtherwiseAtItsSizeIsOpen(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		open   []string
	}{
		"full":       {func(*Config) {}, nil},
		"small":      {func(c *Config) { c.Jobs = 1000 }, []string{"pool-6"}},
		"in a hurry": {func(c *Config) { c.Settle = time.Second }, []string{"pool-sizing"}},
		"few sizes":  {func(c *Config) { c.Sizes = []int{1, 4} }, []string{"pool-sizing"}},
		"usual":      {func(c *Config) { c.Part = []string{"submit", "burst"} }, []string{"pool-sizing"}},
	} {
		c := experiment.Sized[Config]("full")
		test.change(&c)
		e := ledger.NewEvidence(planned(t, c), 1)
		var open []string
		for _, claim := range family.Claims {
			for _, p := range claim.Parts {
				if slices.ContainsFunc(p.Cases(e), func(c ledger.Case) bool { return c.Open != "" }) && !slices.Contains(open, claim.ID) {
					open = append(open, claim.ID)
				}
			}
		}
		if !slices.Equal(open, test.open) {
			t.Errorf("%s: %v are open, want %v", name, open, test.open)
		}
	}
}

func TestBadInputIsNamed(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		`contestant "x"`:                     func(c *Config) { c.Contestant = []string{"x"} },
		`part "x"`:                           func(c *Config) { c.Part = []string{"x"} },
		"there is no part":                   func(c *Config) { c.Part = nil },
		"workers is 0: want 1 to 100000":     func(c *Config) { c.Workers = []int{0} },
		"workers is empty: want":             func(c *Config) { c.Workers = nil },
		"producers is -1: want 0 to 100000":  func(c *Config) { c.Producers = []int{-1} },
		"work is 1s: want 0s to 1ms":         func(c *Config) { c.Work = []time.Duration{time.Second} },
		"buffer is 0: want":                  func(c *Config) { c.Buffer = 0 },
		"rounds is 0: want 1 to 1000":        func(c *Config) { c.Rounds = 0 },
		"sizes is 0: want 1 to 1000":         func(c *Config) { c.Sizes = []int{0} },
		"jobs is 0: want":                    func(c *Config) { c.Jobs = 0 },
		"time is 0s: want more than 0s":      func(c *Config) { c.Time = 0 },
		"settle is 0s: want more than 0s":    func(c *Config) { c.Settle = 0 },
		"measure is 0s: want at least 100ms": func(c *Config) { c.Measure = 0 },
		"memory-cap is -1: want":             func(c *Config) { c.MemoryCap = -1 },
	} {
		c := experiment.Sized[Config]("")
		spoil(&c)
		_, _, err := experiment.Session{Dir: t.TempDir()}.Run(t.Context(), Experiment, &c)
		if !errors.Is(err, experiment.ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestChosenContestantsOnly(t *testing.T) {
	c := experiment.Sized[Config]("")
	c.Contestant = []string{Channel, Spillway}
	for _, r := range planned(t, c) {
		if r.Pattern != Channel && r.Pattern != Spillway {
			t.Errorf("%s of %s was not chosen", r.Pattern, r.Setup)
		}
	}
}

func TestWhatIsNamedTwiceIsMeasuredOnce(t *testing.T) {
	c := experiment.Sized[Config]("full")
	once := len(planned(t, c))
	c.Part, c.Workers, c.Producers, c.Sizes = append(c.Part, c.Part...), append(c.Workers, 2), append(c.Producers, 1, 0), append(c.Sizes, 1)
	if twice := len(planned(t, c)); twice != once {
		t.Errorf("%d cells instead of %d", twice, once)
	}
}
