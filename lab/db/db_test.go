package db

import (
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/ledger/planted"
	"github.com/spillway-go/spillway/lab/results"
)

func TestMain(m *testing.M) { labtest.Main(m, nil) }

func config(size string) Config {
	c := experiment.Sized[Config](size)
	c.Postgres = "postgres://postgres@127.0.0.1:1/postgres" // which nobody asks
	return c
}

// made is five runs of each cell, with these figures by contestant.
func made(c Config, figures func(k ledger.Key) map[string]float64) (runs []results.Run) {
	p, err := c.plan()
	if err != nil {
		panic(err)
	}
	for _, k := range p.Keys() {
		for repeat := range 5 {
			r := results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Repeat: repeat, Params: map[string]any{"settle_s": c.Settle.Seconds()}}
			if figures != nil {
				r.Extra = figures(k)
			}
			runs = append(runs, r)
		}
	}
	return runs
}

func verdicts(runs []results.Run) map[string]results.Answer {
	out := map[string]results.Answer{}
	for _, c := range family.Judge(ledger.NewEvidence(runs, 1)) {
		for _, a := range c.Answers {
			out[c.ID+"/"+a.Part+"/"+a.Setup] = a
		}
	}
	return out
}

func TestEveryRowDecidesWhatIsPlanted(t *testing.T) {
	runs := made(config(""), nil)
	for i := range runs {
		if runs[i].Repeat > 0 {
			runs[i].Repeat = 0
		}
	}
	planted.Check(t, family, runs)
}

// A pool of 4 has 1,000 queries a second, larger ones hardly more and a much longer p99.
func bouts(us, p99 float64) func(ledger.Key) map[string]float64 {
	return func(k ledger.Key) map[string]float64 {
		rate, long := us, p99
		switch k.Pattern {
		case poolOf(1):
			rate, long = 400, 5
		case poolOf(2):
			rate, long = 800, 6
		case poolOf(4):
			rate, long = 1_000, 10
		case poolOf(8), poolOf(16), poolOf(32), poolOf(64):
			rate, long = 1_015, 90
		}
		return map[string]float64{"before": rate, "after": rate, "p99_before": long, "p99_after": long}
	}
}

func TestTheBestPoolIsTheSmallestThatIsAsGood(t *testing.T) {
	for _, c := range []struct {
		rate, p99        float64
		throughput, time results.Verdict
	}{
		{1_000, 11, results.Holds, results.Holds},
		{1_000, 20, results.Holds, results.Fails}, // which would be short beside the larger pools
		{800, 11, results.Fails, results.Holds},
	} {
		got := verdicts(made(config(""), bouts(c.rate, c.p99)))
		for _, setup := range []string{"SQLite, before the change", "SQLite, from 5 s after it", "PostgreSQL, before the change", "PostgreSQL, from 5 s after it"} {
			a, b := got["engine-4/throughput/"+setup], got["engine-4/p99/"+setup]
			if a.Verdict != c.throughput || b.Verdict != c.time || !strings.Contains(b.Why, "the pool of 4") {
				t.Errorf("%v/s, %v: %s: %s, %s", c.rate, c.p99, setup, a.Why, b.Why)
			}
		}
	}
}

func TestWhatWasNotRunIsOpen(t *testing.T) {
	c := config("")
	c.Database, c.Part = []string{SQLite}, []string{pools}
	got := verdicts(made(c, bouts(1_000, 11)))
	for name, open := range map[string]bool{
		"engine-4/p99/SQLite, before the change": false, "engine-4/p99/PostgreSQL, before the change": true,
		"audit-1/throughput/SQLite": true, "audit-1/records/PostgreSQL": true,
	} {
		if a := got[name]; open != strings.HasPrefix(a.Why, "It needs ") {
			t.Errorf("%s: %s", name, a.Why)
		}
	}
	c = config("")
	c.Settle = 6 * time.Second
	if a := verdicts(made(c, bouts(1_000, 11)))["engine-4/p99/SQLite, before the change"]; a.Verdict != results.Inconclusive || !strings.Contains(a.Why, "5 s") {
		t.Errorf("%+v", a)
	}
}

func TestAuditIsJudgedByTheBestNumberOfClients(t *testing.T) {
	audits := func(missing float64) func(ledger.Key) map[string]float64 {
		return func(k ledger.Key) map[string]float64 {
			rate := map[string]float64{Unaudited: 5_000, Audit: 4_700, Flooded: 3_000}[k.Pattern]
			if k.Pattern == Audit && strings.HasPrefix(k.Load, "64 ") {
				rate = 2_000 // its clients wait for commits
			}
			lost := 0.
			if k.Pattern == Flooded {
				lost = missing
			}
			return map[string]float64{answered.Key: rate, unrecorded.Key: lost}
		}
	}
	for missing, want := range map[float64]results.Verdict{0: results.Holds, 1: results.Fails} {
		got := verdicts(made(config(""), audits(missing)))
		if a := got["audit-1/throughput/SQLite"]; a.Verdict != results.Holds {
			t.Errorf("%s", a.Why)
		}
		if a := got["audit-1/records/PostgreSQL"]; a.Verdict != want {
			t.Errorf("%v missing: %s", missing, a.Why)
		}
	}
}

func TestSettingsThatCannotBeAreRefused(t *testing.T) {
	for want, set := range map[string]func(*Config){
		`unknown database "oracle"`: func(c *Config) { c.Database = []string{"oracle"} },
		`unknown part "all"`:        func(c *Config) { c.Part = []string{"all"} },
		"there is no PostgreSQL":    func(c *Config) { c.Database, c.Postgres = []string{PostgreSQL}, "" },
		"postgres is not a URL":     func(c *Config) { c.Postgres = "localhost" },
	} {
		c := config("")
		set(&c)
		if _, err := c.plan(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestOnePartOverOneDatabaseTakesFiveMinutesAtMost(t *testing.T) {
	for _, engine := range engines {
		for _, part := range parts {
			c := config("")
			c.Database, c.Part = []string{engine}, []string{part}
			p, err := c.plan()
			if err != nil || p.Expect(5) > 5*time.Minute {
				t.Errorf("%s of %s: %v, %v", part, engine, p.Expect(5), err)
			}
		}
	}
}
