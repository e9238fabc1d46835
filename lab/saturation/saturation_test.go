package saturation

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/ledger/planted"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"
)

func config() Config {
	c := experiment.Sized[Config]("")
	c.Postgres = "postgres://postgres@127.0.0.1:1/postgres" // which nobody asks
	return c
}

// made is so many runs of each cell. Each answers the share good of 1,000 a second that can be done.
func made(t *testing.T, c Config, repeats int, good func(ledger.Key) float64) (runs []results.Run) {
	t.Helper()
	p, err := c.plan()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range p.Keys() {
		for repeat := range repeats {
			r := results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Repeat: repeat, Elapsed: 1, Offered: 2000}
			r.Extra = map[string]float64{capacity.Key: 1000, slowest.Key: 200}
			r.Outcomes = []results.Outcome{{Kind: loadgen.OK.String(), Count: uint64(1000 * good(k))}}
			runs = append(runs, r)
		}
	}
	return runs
}

func TestVerdictsFollowTheFigures(t *testing.T) {
	planted.Check(t, family, made(t, config(), 1, func(ledger.Key) float64 { return .9 }))
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

func TestAServiceThatAnswersNothingFails(t *testing.T) {
	got := verdicts(made(t, config(), 5, func(k ledger.Key) float64 {
		if k.Pattern == Spillway && strings.HasPrefix(k.Setup, "4 ms") || k.Pattern == Spillway && k.Load == "3x" && strings.HasSuffix(k.Setup, "hot rows") {
			return 0
		}
		return .9
	}))
	for name, want := range map[string]results.Verdict{
		"overload-4/processors/4 ms of processor, one processor, 1.5x":                      results.Fails,
		"overload-4/processors/1 ms of processor around a call of 20 ms, one processor, 3x": results.Holds,
		"overload-4/collector/40,000 small allocations, one processor, 3x":                  results.Holds,
		"overload-4/p99/40,000 small allocations, one processor, 3x":                        results.Holds,
		"overload-5//PostgreSQL, three hot rows, 1.5x":                                      results.Holds,
		"overload-5//PostgreSQL, three hot rows, 3x":                                        results.Fails,
		"overload-5//PostgreSQL, a sort, 3x":                                                results.Holds,
	} {
		if a, ok := got[name]; !ok || a.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", name, a.Verdict, a.Why, want)
		}
	}
}

func TestWhatWasNotRunIsOpen(t *testing.T) {
	for want, set := range map[string]func(*Config){
		"It needs PostgreSQL":      func(c *Config) { c.Postgres = "" },
		"run it without --resourc": func(c *Config) { c.Resource = []string{Sort, HotRows} },
		"run it without --contest": func(c *Config) { c.Contestant = []string{Spillway, Failsafe} },
	} {
		c := config()
		set(&c)
		open := 0
		for name, a := range verdicts(made(t, c, 5, func(ledger.Key) float64 { return .9 })) {
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

func TestWithoutADatabaseThereIsNothingToRun(t *testing.T) {
	c := config()
	c.Postgres, c.Resource = "", []string{Sort}
	if _, err := c.plan(); err == nil || !strings.Contains(err.Error(), "--postgres") {
		t.Errorf("%v", err)
	}
	for _, set := range []func(*Config){
		func(c *Config) { c.Resource = []string{"network"} },
		func(c *Config) { c.Contestant = []string{"magic"} },
		func(c *Config) { c.Postgres = "mysql://x" },
	} {
		c := config()
		set(&c)
		if _, err := c.plan(); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
