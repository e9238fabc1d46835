package overload

import (
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/ledger/planted"
	"github.com/spillway-go/spillway/lab/results"
)

func TestVerdictsFollowTheFigures(t *testing.T) {
	c := experiment.Sized[Config]("")
	c.Load = []float64{0.5, 10}
	p, err := c.plan()
	if err != nil {
		t.Fatal(err)
	}
	var runs []results.Run
	for _, k := range p.Keys() {
		runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Elapsed: 1})
	}
	planted.Check(t, Experiment.Family, runs)
}

// Of the rivals those that were run are enough.
func TestOneRivalIsEnough(t *testing.T) {
	var runs []results.Run
	for n := range 5 {
		for name, ok := range map[string]uint64{Spillway: 230, WorkerPool: 240, None: 0} {
			runs = append(runs, results.Run{Setup: setup, Load: "10x", Pattern: name, Repeat: n, Elapsed: 1, Offered: 2400,
				Outcomes: []results.Outcome{{Kind: "ok", Count: ok}}, Extra: map[string]float64{"critical_offered": 480, "critical_ok": 228, "capacity": 240}})
		}
	}
	got := Experiment.Family.Judge(ledger.NewEvidence(runs, 1))
	for i, want := range []results.Verdict{results.Holds, results.Fails, results.Inconclusive} {
		if a := got[i].Answers; len(a) != 1 || got[i].Verdict != want || a[0].Setup != "at 10x" {
			t.Errorf("%s: %s (%s), want %s", got[i].ID, got[i].Verdict, got[i].Why, want)
		}
	}
	for _, a := range Experiment.Family.Judge(ledger.NewEvidence(runs[:1], 1))[2].Answers {
		if !a.Missing || !strings.Contains(a.Why, "was not run") {
			t.Errorf("without a rival: %s", a.Why)
		}
	}
}

func TestBadSettingsAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"load":       func(c *Config) { c.Load = []float64{0} },
		"loads":      func(c *Config) { c.Load = nil },
		"time":       func(c *Config) { c.Time = 0 },
		"deadline":   func(c *Config) { c.Deadline = time.Millisecond },
		"slots":      func(c *Config) { c.Slots = 0 },
		"contestant": func(c *Config) { c.Contestant = []string{"magic"} },
	} {
		c := experiment.Sized[Config]("")
		if spoil(&c); c.check() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
