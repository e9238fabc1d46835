package mixes

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/ledger/planted"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"
)

func config(size string) Config {
	c := experiment.Sized[Config](size)
	c.Postgres = "postgres://postgres@127.0.0.1:1/postgres" // which nobody asks
	return c
}

// made is so many runs of each cell, with these figures.
func made(t *testing.T, c Config, repeats int, figures func(k ledger.Key) map[string]float64) (runs []results.Run) {
	t.Helper()
	p, err := c.plan()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range p.Keys() {
		for repeat := range repeats {
			r := results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Repeat: repeat, Elapsed: 1}
			if figures != nil {
				r.Extra = figures(k)
			}
			runs = append(runs, r)
		}
	}
	return runs
}

func TestVerdictsFollowTheFigures(t *testing.T) {
	planted.Check(t, family, made(t, config(""), 1, nil))
}

// verdicts are those of each part in each set-up.
func verdicts(runs []results.Run) map[string]results.Answer {
	out := map[string]results.Answer{}
	for _, c := range family.Judge(ledger.NewEvidence(runs, 1)) {
		for _, a := range c.Answers {
			out[c.ID+"/"+a.Part+"/"+a.Setup] = a
		}
	}
	return out
}

// A kind that gets nothing is a failure: 0 must not be taken for a figure that is missing.
func TestAStarvedKindFails(t *testing.T) {
	got := verdicts(made(t, config(""), 5, func(k ledger.Key) map[string]float64 {
		if k.Pattern == Spillway && strings.HasSuffix(k.Load, "x, 200 ms") {
			return map[string]float64{inTime.Key: 0, ofFair.Key: 0}
		}
		return map[string]float64{inTime.Key: 99, ofFair.Key: 101, workDone.Key: 900}
	}))
	for name, want := range map[string]results.Verdict{
		"mixes-1//SQLite, six lengths, 0.4x, 200 ms": results.Fails, "mixes-1//PostgreSQL, six lengths, 0.4x, 70 ms": results.Holds,
		"mixes-2/share/SQLite, six lengths, 1.5x, 200 ms": results.Fails, "mixes-2/share/SQLite, lookups beside reports, 1.5x, reports of 100 ms": results.Holds,
		"mixes-2/work/PostgreSQL, six lengths, 1.5x": results.Holds,
	} {
		if a, ok := got[name]; !ok || a.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", name, a.Verdict, a.Why, want)
		}
	}
}

func TestWhatWasNotRunIsOpen(t *testing.T) {
	for want, set := range map[string]func(*Config){
		"It needs PostgreSQL":      func(c *Config) { c.Postgres = "" },
		"It needs SQLite":          func(c *Config) { c.Database = []string{PostgreSQL} },
		"run it without --mix":     func(c *Config) { c.Mix = []string{"lengths"} },
		"run it without --contest": func(c *Config) { c.Contestant = []string{Spillway, Failsafe} },
	} {
		c := config("")
		set(&c)
		got := verdicts(made(t, c, 5, func(ledger.Key) map[string]float64 {
			return map[string]float64{inTime.Key: 99, ofFair.Key: 101, workDone.Key: 900}
		}))
		open := 0
		for name, a := range got {
			switch {
			case strings.Contains(a.Why, want):
				open++
			case a.Verdict != results.Holds:
				t.Errorf("%s: %s: %s, %s", want, name, a.Verdict, a.Why)
			}
		}
		if open == 0 {
			t.Errorf("nothing is open because %s", want)
		}
	}
}

// In a load of 1.5 times the capacity every kind's fair share is two thirds.
func TestTheFiguresOfALoad(t *testing.T) {
	x := mixes[0] // 109 ms in ten requests
	res := &loadgen.Result{Offered: 200, Classes: make([]loadgen.ClassResult, 2)}
	add := func(class int, o loadgen.Outcome, n uint64) {
		res.Classes[class].Outcomes[o].Count += n
		res.Outcomes[o].Count += n
	}
	add(0, loadgen.OK, 90)
	add(0, loadgen.Rejected, 60)
	add(0, loadgen.Timeout, 30)
	add(1, loadgen.OK, 12)
	add(1, loadgen.Timeout, 8)
	capacity := 100. / 1.5 // requests a second
	runs := x.runs(res, gauge{capacity: capacity}, 2*time.Second)
	for i, want := range []map[string]float64{
		{inTime.Key: 51, workDone.Key: (90*1 + 12*100) / 2},
		{inTime.Key: 50, ofFair.Key: 75},
		{inTime.Key: 60, ofFair.Key: 90},
	} {
		if len(runs[i].Extra) != len(want) || runs[i].Elapsed != 2 {
			t.Errorf("run %d: %v in %v s", i, runs[i].Extra, runs[i].Elapsed)
		}
		for key, x := range want {
			if got := runs[i].Extra[key]; math.Abs(got-x) > 1e-9*x {
				t.Errorf("run %d: %s is %v, want %v", i, key, got, x)
			}
		}
	}
	if runs[1].Offered != 180 || runs[2].Offered != 20 || runs[1].Of("rejected").Count != 60 {
		t.Errorf("by kind %+v, %+v", runs[1], runs[2])
	}
	// Of a load below the capacity everything is fair; of a kind that did not come nothing is known.
	rare := &loadgen.Result{Offered: 10, Classes: make([]loadgen.ClassResult, 2)}
	rare.Classes[0].Outcomes[loadgen.OK].Count = 10
	runs = x.runs(rare, gauge{capacity: 1e3}, time.Second)
	if runs[1].Extra[ofFair.Key] != 100 || len(runs[2].Extra) != 0 {
		t.Errorf("%v, %v", runs[1].Extra, runs[2].Extra)
	}
}

func TestInTurnEveryKindHasItsPart(t *testing.T) {
	for _, x := range mixes {
		var s senders
		seen := map[string]int{}
		for _, k := range x.kinds {
			s.parts = append(s.parts, loadgen.Part{Class: k.name, Weight: float64(k.parts), Target: loadgen.TargetFunc(func(context.Context, uint64) loadgen.Outcome {
				seen[k.name]++
				return loadgen.OK
			})})
		}
		round, _ := x.total()
		for n := range uint64(3 * round) {
			s.inTurn().Do(t.Context(), n)
		}
		for _, k := range x.kinds {
			if seen[k.name] != 3*k.parts {
				t.Errorf("%s: %d of %s in three rounds, want %d", x.name, seen[k.name], k.name, 3*k.parts)
			}
		}
	}
}

func TestItTakesWhatWasPromised(t *testing.T) {
	for _, c := range []struct {
		size    string
		repeats int
		most    time.Duration
	}{{"quick", 1, 110 * time.Second}, {"", 5, 14*time.Minute + 30*time.Second}} { // and what prepares it
		config := experiment.Sized[Config](c.size) // over SQLite
		p, err := config.plan()
		if err != nil || p.Expect(c.repeats) > c.most {
			t.Errorf("%q, %d repeats: %v, %v", c.size, c.repeats, p.Expect(c.repeats), err)
		}
		t.Logf("%q, %d repeats: %v", c.size, c.repeats, p.Expect(c.repeats))
	}
}

// Without the surge a service without a limit was measured before anybody was late.
func TestOverloadBeginsWithAQueueAsLongAsTheMostPatientWait(t *testing.T) {
	c := config("")
	for _, x := range mixes {
		for _, times := range []float64{x.below, x.above} {
			all := c.stretches(x, times, 100)
			counts := all[len(all)-2]
			if counts.For != c.Time || counts.Rate != 100*times || all[len(all)-1].For <= x.longest() {
				t.Errorf("%s at %v: %v", x.name, times, all)
			}
			queued := time.Duration(0)
			for _, s := range all[:len(all)-3] {
				queued += time.Duration(float64(s.For) * (s.Rate/100 - 1))
			}
			if want := map[bool]time.Duration{true: x.longest()}[times > 1]; queued != want {
				t.Errorf("%s at %v: work of %v is queued, want %v", x.name, times, queued, want)
			}
		}
	}
	c.Surge = 1
	if all := c.stretches(mixes[0], 1.5, 100); len(all) != 3 {
		t.Errorf("without a surge: %v", all)
	}
}

func TestBadSettingsAreRefused(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		`unknown contestant "magic"`: func(c *Config) { c.Contestant = []string{"magic"} },
		`unknown database "oracle"`:  func(c *Config) { c.Database = []string{"oracle"} },
		`unknown mix "all"`:          func(c *Config) { c.Mix = []string{"all"} },
		"there is no PostgreSQL":     func(c *Config) { c.Database, c.Postgres = []string{PostgreSQL}, "" },
		"postgres is not a URL":      func(c *Config) { c.Postgres = "localhost" },
		"time is 0s: want more than": func(c *Config) { c.Time = 0 },
		"warm-up is 0s: want more":   func(c *Config) { c.WarmUp = 0 },
		"surge is 0: want 1 to 20":   func(c *Config) { c.Surge = 0 },
		"memory-cap is -1: want":     func(c *Config) { c.MemoryCap = -1 },
	} {
		c := config("")
		spoil(&c)
		_, _, err := experiment.Session{Dir: t.TempDir()}.Run(t.Context(), Experiment, &c)
		if !errors.Is(err, experiment.ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestEveryKindHasACellOfItsOwn(t *testing.T) {
	p, err := config("").plan()
	if err != nil {
		t.Fatal(err)
	}
	keys := p.Keys()
	slices.SortFunc(keys, func(a, b ledger.Key) int { return strings.Compare(a.String(), b.String()) })
	if got := len(slices.Compact(keys)); got != len(p.Keys()) || got != 2*9*(3+7) {
		t.Errorf("%d cells, %d of them different, want %d", len(p.Keys()), got, 2*9*(3+7))
	}
}
