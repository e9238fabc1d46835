package fan

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m, Roles()) }

// correct are the contestants that lose nothing.
func correct() []string {
	return without(append(Names(), InParallel, Borrowed), AsPrinted)
}

func TestContestantsFindEverythingInExactlyTheirTime(t *testing.T) {
	for _, n := range []int{2, 8, 64} {
		for _, name := range correct() {
			synctest.Test(t, func(t *testing.T) {
				s := newSources(Virtual, n, 50*time.Millisecond, 20*time.Millisecond)
				look, err := newLookup(name, s)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				a, err := look(t.Context(), query{})
				took, want := time.Since(began), 50*time.Millisecond
				if name == Sequential {
					want += time.Duration(n-1) * 20 * time.Millisecond
				}
				if err != nil || len(a.Users) != s.whole() || took != want {
					t.Errorf("%s, n = %d: %d of %d users in %v, want %v; %v", name, n, len(a.Users), s.whole(), took, want, err)
				}
			})
		}
	}
}

func TestAllReportTheDatabasesErrorAndNoneTheCaches(t *testing.T) {
	down := errors.New("down")
	for _, name := range correct() {
		for _, c := range []struct {
			database, cache error
			users           int
		}{{down, nil, 0}, {nil, down, 1}} {
			synctest.Test(t, func(t *testing.T) {
				look, err := newLookup(name, sources{answering(time.Millisecond, c.database, 1), []find{answering(time.Millisecond, c.cache, 2)}})
				if err != nil {
					t.Fatal(err)
				}
				a, err := look(t.Context(), query{})
				if !errors.Is(err, c.database) || len(a.Users) != c.users {
					t.Errorf("%s: %v, %v; want %v and %d users", name, err, a.Users, c.database, c.users)
				}
			})
		}
	}
}

func TestAsPrintedLosesAnswersAtEqualTimes(t *testing.T) {
	if raceEnabled {
		t.Skip("a data race by design")
	}
	synctest.Test(t, func(t *testing.T) {
		demo, err := loseAnswers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range demo.Counts {
			if c.Name == "lost at 50/50 ms, as-printed" && (c.N < 100 || c.N > 900) {
				t.Errorf("it lost %v of 1000 answers", c.N)
			}
		}
	})
}

func TestDemonstrationsShowTheFaultAndOursHasNone(t *testing.T) {
	if raceEnabled {
		t.Skip("a data race by design")
	}
	for _, d := range demos() {
		demo, err := d.Run(t.Context())
		if err != nil {
			t.Errorf("%s: %v", d.ID, err)
			continue
		}
		counts := map[string]float64{}
		for _, c := range demo.Counts {
			counts[c.Name] = c.N
		}
		switch d.ID {
		case slowFailure:
			if counts["ms, as printed"] != 5000 || counts["ms, ours"] != 0 {
				t.Errorf("%s: %v", d.ID, counts)
			}
		case swallowed:
			if counts["errors seen, as printed"] != 0 || counts["errors seen, ours"] != 1 {
				t.Errorf("%s: %v", d.ID, counts)
			}
		case killedByPanic:
			if counts["processes ended, as printed"] != 1 || counts["processes ended, ours"] != 0 {
				t.Errorf("%s: %v", d.ID, counts)
			}
		case lostAnswers:
			if counts["lost at 50/50 ms, as-printed"] == 0 || counts["lost at 50/50 ms, spillway"] != 0 {
				t.Errorf("%s: %v", d.ID, counts)
			}
		default:
			t.Errorf("no test checks %s", d.ID)
		}
	}
}

func TestABoutGivesEveryEntryItsRun(t *testing.T) {
	for _, kind := range []string{Virtual, Computing, OneProc, Yielding} {
		b := bout{Kind: kind, Sources: 3, Database: 20 * time.Microsecond, Cache: 10 * time.Microsecond, Rounds: 2, Time: 50 * time.Microsecond}
		for _, name := range correct() {
			b.Entries = append(b.Entries, entry{name, false})
		}
		b.Entries = append(b.Entries, entry{Spillway, true})
		runs, err := b.run(t.Context(), 7, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range runs {
			first, second := r.Extra[roundKey(0)], r.Extra[roundKey(1)]
			if first <= 0 || second <= 0 || r.Extra["behind"] <= 0 || (r.Extra[freeKey(1)] > 0) != (kind == Computing) {
				t.Errorf("%s, %s: %v", kind, b.Entries[i].Contestant, r.Extra)
			}
			if kind != Virtual {
				continue
			}
			want := 20e3
			if b.Entries[i].Contestant == Sequential {
				want = 40e3
			}
			if first != want || second != want {
				t.Errorf("%s took %v and %v ns of virtual time, want %v", b.Entries[i].Contestant, first, second, want)
			}
		}
	}
}

func TestANestReachesEveryLeaf(t *testing.T) {
	n := nesting{Names: []string{Spillway, Sequential, Corrected, ErrGroup, Conc}, Width: 4, Depth: 3, Budget: 5, Rounds: 1}
	rounds, err := playNested(t.Context(), n)
	if err != nil || len(rounds) != 1 || len(rounds[0]) != 5 {
		t.Fatalf("%v, %v", rounds, err)
	}
	// One goroutine on each processor may have returned its token and not ended yet.
	if most := rounds[0][Spillway].Goroutines; most > float64(5+runtime.GOMAXPROCS(0)) {
		t.Errorf("a budget of 5 goroutines, and %v", most)
	}
	if most := rounds[0][Sequential].Goroutines; most != 0 {
		t.Errorf("in sequence, and %v goroutines", most)
	}
}

func TestHedgingIsMeasuredFromOutside(t *testing.T) {
	got := map[bool]hedged{}
	for _, on := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			h := hedging{Hedged: on, Calls: 2000, Outage: 100, Usual: 10 * time.Millisecond, Straggle: time.Second, Straggler: .01, Seed: 5}
			out, err := h.play(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got[on] = out
		})
	}
	if plain := got[false]; plain.P99 != 1e9 || plain.Extra != 0 || plain.Outage != 0 || plain.Cancelled != 0 {
		t.Errorf("not hedged: %+v", plain)
	}
	if on := got[true]; on.P99 >= 1e9 || on.Extra <= 0 || on.Cancelled != 0 {
		t.Errorf("hedged: %+v", on)
	}
}

func TestAChangeOfTheWorkIsNoticed(t *testing.T) {
	got, err := playChange(t.Context(), change{Sources: 4, Quick: 0, Slow: time.Millisecond, Settle: 600, Most: 1000})
	if err != nil || got.ToParallel >= 1000 || got.ToSequential >= 1000 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestThePlan(t *testing.T) {
	for name, c := range map[string]Config{"default": Defaults(), "quick": Quick(), "grid": func() Config { c := Defaults(); c.Grid = true; return c }()} {
		plan, err := Classic{c}.Plan()
		if err != nil {
			t.Fatal(err)
		}
		seen := map[cell]bool{}
		for _, c := range plan.Cells {
			k := cell{Setup: c.Setup, Load: c.Load, Pattern: c.Pattern, Twin: c.Twin}
			if seen[k] {
				t.Errorf("%s: %+v is there twice", name, k)
			}
			seen[k] = true
		}
		for _, k := range []cell{
			{Setup: Virtual, Load: "n = 2, 50/50 ms", Pattern: AsPrinted}, {Setup: Sleeping, Load: "n = 2, 50/50 ms", Pattern: Corrected},
			{Setup: Computing, Load: "n = 8, 500/100 µs", Pattern: ErrGroup}, {Setup: OneProc, Load: "n = 8, 5/1 µs", Pattern: Conc},
			{Setup: gridSetup(Computing, 8), Load: "50 µs", Pattern: Spillway, Twin: true}, {Setup: allocSetup, Load: "n = 8", Pattern: Borrowed},
			{Setup: hedgeSetup, Load: "10 ms, or 1 s", Pattern: Hedged},
		} {
			if !seen[k] && !(raceEnabled && k.Pattern == AsPrinted) {
				t.Errorf("%s has no %+v", name, k)
			}
		}
		if scaled := plan.Scaled != ""; scaled != (name == "quick") {
			t.Errorf("%s: scaled %q", name, plan.Scaled)
		}
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	for want, change := range map[string]func(*Config){
		`contestant "magic"`: func(c *Config) { c.Contestants = []string{"magic"} },
		"n is 1":             func(c *Config) { c.Sources = []int{1} },
		"branch is 1ns":      func(c *Config) { c.Branches = []time.Duration{1} },
		"rounds 0":           func(c *Config) { c.Rounds = 0 },
		"calls is 10":        func(c *Config) { c.Calls = 10 },
		"nothing to do":      func(c *Config) { c.Sources = nil },
	} {
		c := Defaults()
		change(&c)
		if _, err := (Classic{c}).Plan(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A session that is interrupted leaves no process behind and no verdict without runs.
func TestACancelledCellIsNoMeasurement(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	plan, err := Classic{Quick()}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Cells[0].Run(ctx, experiment.Trial{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
