package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/fan"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/usage"
)

func TestMain(m *testing.M) { labtest.Main(m, roles()) }

// correct are the contestants that lose nothing. The first five nest.
var correct = []string{fan.Spillway, fan.Sequential, fan.Corrected, fan.ErrGroup, fan.Conc, fan.InParallel, fan.Borrowed}

func made(t *testing.T, name string, s sources, table fan.Table) lookup {
	t.Helper()
	look, err := newLookup(name, s, table)
	if err != nil {
		t.Fatal(err)
	}
	return look
}

func TestContestantsFindEverythingInExactlyTheirTime(t *testing.T) {
	for _, n := range []int{2, 8, 64} {
		for _, name := range correct {
			synctest.Test(t, func(t *testing.T) {
				table := fan.Table{Sources: n, Database: 50 * time.Millisecond, Cache: 20 * time.Millisecond}
				look := made(t, name, newSources(fan.Virtual, table), table)
				began := time.Now()
				found, err := look(t.Context(), query{})
				took, want := time.Since(began), 50*time.Millisecond
				if name == fan.Sequential {
					want += time.Duration(n-1) * 20 * time.Millisecond
				}
				if err != nil || len(found.list) != whole(table) || took != want {
					t.Errorf("%s, n = %d: %d of %d users in %v, want %v; %v", name, n, len(found.list), whole(table), took, want, err)
				}
			})
		}
	}
}

func TestAllReportTheDatabasesErrorAndNoneTheCaches(t *testing.T) {
	down := errors.New("down")
	for _, name := range correct {
		for _, c := range []struct {
			database, cache error
			users           int
		}{{down, nil, 0}, {nil, down, 1}} {
			synctest.Test(t, func(t *testing.T) {
				look := made(t, name, sources{answering(time.Millisecond, c.database, 1), []find{answering(time.Millisecond, c.cache, 2)}}, fan.Table{})
				found, err := look(t.Context(), query{})
				if !errors.Is(err, c.database) || len(found.list) != c.users {
					t.Errorf("%s: %v, %v; want %v and %d users", name, err, found.list, c.database, c.users)
				}
			})
		}
	}
}

func TestDemonstrationsShowTheFaultAndOursHasNone(t *testing.T) {
	if usage.Race {
		t.Skip("a data race by design")
	}
	counts := map[string]float64{}
	for _, d := range fan.Demonstrations.Demos() {
		demo, err := d.Run(t.Context())
		if err != nil {
			t.Errorf("%s: %v", d.ID, err)
		}
		for _, c := range demo.Counts {
			counts[c.Name] = c.N
		}
	}
	for name, want := range map[string]float64{
		"ms, as printed": 5000, "ms, ours": 0, "errors seen, as printed": 0, "errors seen, ours": 1,
		"processes ended, as printed": 1, "processes ended, ours": 0, "lost at 50/50 ms, spillway": 0, "lookups each": 1000,
	} {
		if got, there := counts[name]; got != want || !there {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestEveryContestantIsMeasuredInEveryKindOfWork(t *testing.T) {
	for _, kind := range []string{fan.Virtual, fan.Computing, fan.OneProc, fan.Yielding} {
		l := fan.Lookups{Kind: kind, Rounds: 2, Time: 50 * time.Microsecond, Contestants: append(slices.Clone(correct), fan.Spillway),
			Tables: []fan.Table{{Sources: 3, Database: 20 * time.Microsecond, Cache: 10 * time.Microsecond}}}
		var figures [][]fan.Figures
		inClockOf(t, kind, func(t *testing.T) {
			var err error
			if figures, err = tables(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		})
		for i, f := range figures[0] {
			if len(f["ns"]) != 2 || slices.Min(f["ns"]) <= 0 || (len(f["free"]) == 2) != (kind == fan.Computing) {
				t.Errorf("%s, %s: %v", kind, l.Contestants[i], f)
			}
			want := 20e3
			if l.Contestants[i] == fan.Sequential {
				want = 40e3
			}
			if kind == fan.Virtual && !slices.Equal(f["ns"], []float64{want, want}) {
				t.Errorf("%s took %v ns of virtual time, want %v", l.Contestants[i], f["ns"], want)
			}
		}
	}
}

func inClockOf(t *testing.T, kind string, f func(*testing.T)) {
	if kind == fan.Virtual {
		synctest.Test(t, f)
		return
	}
	f(t)
}

func TestNestedLookupsReachEveryLeaf(t *testing.T) {
	table := fan.Table{Sources: 4, Levels: 3, Budget: 5}
	for _, name := range correct[:5] {
		var leaves atomic.Int64
		p := player{name: name, whole: 1, find: made(t, name, sources{Database: func(context.Context, query) (*users, error) {
			leaves.Add(1)
			return &users{[]user{{ID: 1}}}, nil
		}}, table)}
		_ = p.ready(0)
		p.run(t.Context(), 1)
		if err := p.done(); err != nil || leaves.Load() != 64 {
			t.Errorf("%s reached %d of 64 leaves, %v", name, leaves.Load(), err)
		}
		if most := p.goroutines[0]; name == fan.Sequential && most != 0 {
			t.Errorf("%s: %v goroutines", name, most)
		}
	}
}

func TestHedgingIsMeasuredFromOutside(t *testing.T) {
	got := map[bool]map[string]float64{}
	for _, on := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			out, err := hedge(t.Context(), fan.Hedging{Hedged: on, Calls: 2000, Seed: 5})
			if err != nil {
				t.Fatal(err)
			}
			got[on] = out
		})
	}
	if plain := got[false]; plain["p99"] != 1e9 || plain["extra"] != 0 || plain["outage"] != 0 || plain["cancelled"] != 0 {
		t.Errorf("not hedged: %v", plain)
	}
	if on := got[true]; on["p99"] >= 1e9 || on["extra"] <= 0 || on["cancelled"] != 0 {
		t.Errorf("hedged: %v", on)
	}
}

func TestAMeasurementThatIsStoppedSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := playLookups(ctx, fan.Lookups{Kind: fan.Computing, Contestants: correct, Tables: []fan.Table{{Sources: 2}}, Rounds: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestASessionAnswersEveryClaim(t *testing.T) {
	soak.WithoutRace(t)
	dir := filepath.Join(t.TempDir(), "out")
	c := experiment.Sized[fan.Config]("quick")
	c.Sources, c.Branch, c.Rounds, c.Time, c.Calls = []int{2, 8}, []time.Duration{time.Microsecond, time.Millisecond}, 1, 50*time.Microsecond, 500
	c.Contestant = []string{fan.Spillway, fan.Sequential, fan.Corrected}
	res, _, err := experiment.Session{Dir: dir, Repeats: 1, Seed: 1, Progress: experiment.NewProgress(t.Output(), false, 0)}.Run(t.Context(), fan.Experiment, &c)
	if err != nil || res.Partial != "" || len(res.Demos) != 4 || len(res.Claims) != len(fan.Experiment.Claims) {
		t.Fatalf("%v, %q, %d demonstrations, %d claims", err, res.Partial, len(res.Demos), len(res.Claims))
	}
	for _, claim := range res.Claims {
		for _, a := range claim.Answers {
			busy := strings.Contains(a.Setup, "a processor free")       // or none was
			unlike := strings.Contains(a.Setup, "a change of the work") // as measured in this short time
			if a.Missing && !busy && !unlike {
				t.Errorf("%s/%s (%s): %s", claim.ID, a.Part, a.Setup, a.Why)
			}
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, results.ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`id="grid"`, `class="heat-`, "1000 µs", "panic in a cache that kills"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the report has no %q", want)
		}
	}
}
