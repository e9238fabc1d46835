package overload

import (
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/ledger/planted"
	"github.com/spillway-go/spillway/lab/results"
)

func TestVerdictsFollowTheFigures(t *testing.T) {
	soak.WithoutRace(t)
	p, err := experiment.Sized[Config]("").plan()
	if err != nil {
		t.Fatal(err)
	}
	var runs []results.Run
	for _, k := range p.Keys() {
		runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Elapsed: 1})
	}
	planted.Check(t, Experiment.Family, runs)
}

// Without all loads and rivals a goal is open: at half of the capacity nothing is lost.
func TestOneRivalIsNotEnough(t *testing.T) {
	var runs []results.Run
	for n := range 9 {
		for name, ok := range map[string]uint64{Spillway: 230, WorkerPool: 240, None: 0} {
			runs = append(runs, results.Run{Setup: setup, Load: "10x", Pattern: name, Repeat: n, Elapsed: 1, Offered: 2400,
				Outcomes: []results.Outcome{{Kind: "ok", Count: ok}}, Extra: map[string]float64{"critical_offered": 480, "critical_ok": 228, "capacity": 240}})
		}
	}
	got := Experiment.Family.Judge(ledger.NewEvidence(runs, 1))
	for i, want := range []results.Verdict{results.Inconclusive, results.Fails, results.Inconclusive} {
		a := got[i].Answers
		if len(a) != len(goalLoads) || got[i].Verdict != want || a[0].Verdict != results.Inconclusive || !strings.Contains(a[0].Why, "without --load") {
			t.Errorf("%s: %s (%s), want %s", got[i].ID, got[i].Verdict, got[i].Why, want)
		}
		if last := a[len(a)-1]; i != 1 && !strings.Contains(last.Why, "without --contestant") {
			t.Errorf("%s at 10x, with two rivals: %s", got[i].ID, last.Why)
		}
	}
}

func TestBadSettingsAreRefused(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"load is 0: want more than 0 and at most 20":     func(c *Config) { c.Load = []float64{0} },
		"load is empty: want more than 0 and at most 20": func(c *Config) { c.Load = nil },
		"time is 0s: want more than 0s":                  func(c *Config) { c.Time = 0 },
		"warm-up is 0s: want more than 0s":               func(c *Config) { c.WarmUp = 0 },
		"deadline is 1ms: want at least 10ms":            func(c *Config) { c.Deadline = time.Millisecond },
		"slots is 0: want at least 1":                    func(c *Config) { c.Slots = 0 },
		"min-work is 0s: want more than 0s":              func(c *Config) { c.Min = 0 },
		"min-work 1m0s is above max-work 60ms":           func(c *Config) { c.Min = time.Minute },
		"patients is 0: want at least 1":                 func(c *Config) { c.Patients = 0 },
		"memory-cap is -1: want at least 0":              func(c *Config) { c.MemoryCap = -1 },
		`unknown contestant "magic"`:                     func(c *Config) { c.Contestant = []string{"magic"} },
	} {
		c := experiment.Sized[Config]("")
		spoil(&c)
		if _, _, err := (experiment.Session{}).Run(t.Context(), Experiment, &c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
