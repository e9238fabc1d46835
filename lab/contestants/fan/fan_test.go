package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/fanout"
	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/fan"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/usage"
)

func TestMain(m *testing.M) {
	all := roles()
	all[rolePanic] = contestant.Func(lookUpPanicking)
	labtest.Main(m, all)
}

// correct are the contestants that lose nothing. The first five nest.
var correct = []string{fan.Spillway, fan.Sequential, fan.Corrected, fan.ErrGroup, fan.Conc, fan.InParallel}

// answering is a source that waits and then answers.
func answering(after time.Duration, err error, ids ...int) find {
	return source(spend(fan.Virtual, after), err, ids...)
}

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

func TestAsPrintedTheCallerLearnsTheDatabasesErrorOnlyAfterTheCache(t *testing.T) {
	const cacheTakes = 5 * time.Second
	for name, want := range map[string]time.Duration{fan.AsPrinted: cacheTakes, fan.Spillway: 0} {
		synctest.Test(t, func(t *testing.T) {
			down := errors.New("connection refused")
			look := made(t, name, sources{answering(0, down), []find{answering(cacheTakes, nil, 2)}}, fan.Table{})
			began := time.Now()
			if _, err := look(t.Context(), query{}); !errors.Is(err, down) || time.Since(began) != want {
				t.Errorf("%s: %v after %v, want %v", name, err, time.Since(began), want)
			}
			time.Sleep(cacheTakes) // so that the cache's branch ends in the bubble
		})
	}
}

func TestAsPrintedTheCachesErrorIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("cache: i/o timeout")
		s := sources{answering(time.Millisecond, nil, 1), []find{answering(0, down)}}
		if !usage.Race { // a data race by design
			if found, err := s.asPrinted(t.Context(), query{}); err != nil || len(found.list) != 1 {
				t.Errorf("as printed: %v, %v", found.list, err)
			}
		}
		ours, err := newFanout(s, fanout.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ours.Do(t.Context(), query{}); err != nil || len(got.Value.list) != 1 || len(got.Missing) != 1 || !errors.Is(got.Missing[0].Err, down) {
			t.Errorf("ours should keep the users and name the cache: %v, %v, missing %v", got.Value.list, err, got.Missing)
		}
	})
}

// panicking are sources of which a cache panics.
var panicking = sources{answering(0, nil, 1), []find{func(context.Context, query) (*users, error) { panic("nil map in the cache") }}}

// rolePanic looks up as printed, with that cache and a database that does not answer.
const rolePanic = "fan-panic"

func lookUpPanicking(ctx context.Context, _ struct{}) (int, error) {
	silent := func(ctx context.Context, _ query) (*users, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	found, err := sources{silent, panicking.Caches}.asPrinted(ctx, query{})
	return len(found.list), err
}

func TestAsPrintedAPanicInACacheEndsTheProcess(t *testing.T) {
	found := 0
	if _, err := contestant.Run(t.Context(), contestant.Spec{Role: rolePanic, Input: struct{}{}}, &found); err == nil || !strings.Contains(err.Error(), "panic: nil map in the cache") {
		t.Errorf("as printed: %d users, %v", found, err)
	}
	ours, err := newFanout(panicking, fanout.Config{Mode: fanout.Parallel})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ours.Do(t.Context(), query{})
	if err != nil || len(got.Value.list) != 1 || len(got.Missing) != 1 || got.Missing[0].Branch != "cache 1" {
		t.Fatalf("ours: %v, %v, missing %v", got.Value.list, err, got.Missing)
	}
	if p, ok := errors.AsType[*spillway.PanicError](got.Missing[0].Err); !ok || len(p.Stack) == 0 {
		t.Errorf("ours: %v has no stack", got.Missing[0].Err)
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
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection counts goroutines that have ended, too
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
	res, _, err := experiment.Session{Dir: dir, Repeats: 1, Seed: 1, Progress: experiment.NewProgress(t.Output(), false, 0)}.Run(t.Context(), fan.Experiment, &c)
	if err != nil || res.Partial != "" || len(res.Claims) != len(fan.Experiment.Claims) {
		t.Fatalf("%v, %q, %d claims", err, res.Partial, len(res.Claims))
	}
	for _, claim := range res.Claims {
		for _, a := range claim.Answers {
			busy := strings.Contains(a.Setup, "a processor free")       // or none was
			unlike := strings.Contains(a.Setup, "a change of the work") // as measured in this short time
			noise := strings.Contains(a.Why, "is no value that it can have")
			if a.Missing && !busy && !unlike && !noise {
				t.Errorf("%s/%s (%s): %s", claim.ID, a.Part, a.Setup, a.Why)
			}
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, results.ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`id="grid"`, `class="heat-`, "1000 µs"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the report has no %q", want)
		}
	}
}
