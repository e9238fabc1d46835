package routes

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
)

func tiny() Config {
	return Config{Time: time.Microsecond, Rounds: 1, OneBuild: true, MemoryCap: 1 << 30}
}

func TestNothingIsPlannedTwice(t *testing.T) {
	plan, err := Classic{tiny()}.Plan()
	if err != nil || !strings.Contains(plan.Scaled, "only the build with "+StdJSON) {
		t.Fatalf("scaled %q, %v", plan.Scaled, err)
	}
	seen := map[string]bool{}
	for _, c := range plan.Cells {
		if seen[c.Label()] {
			t.Errorf("%s is planned twice", c.Label())
		}
		seen[c.Label()] = true
	}
	for _, name := range []string{Spillway, Mux, MuxValidator, Gin, GinTyped, Echo, Chi, Huma, Fuego} {
		for _, scenario := range Scenarios {
			if want := name != Huma || scenario != Form; seen[contestOf+StdJSON+" · "+scenario+" · "+name] != want {
				t.Errorf("%s, %s: planned %v", name, scenario, !want)
			}
		}
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"time is 0s":   func(c *Config) { c.Time = 0 },
		"rounds is -1": func(c *Config) { c.Rounds = -1 },
	} {
		c := tiny()
		change(&c)
		if _, err := (Classic{c}).Plan(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if got := Defaults().scaled(); got != "" {
		t.Errorf("full size says %q", got)
	}
}

func TestEveryRoundIsNetOfItsHarness(t *testing.T) {
	block := func(ns int, pause time.Duration) turns.Reading {
		return turns.Reading{N: 10, Clock: time.Duration(10 * ns), Wall: time.Millisecond, Mallocs: 50, Pause: pause}
	}
	harness := []turns.Reading{block(10, 1), block(100, 1), block(10, 1)} // the machine was slow in the second round
	ours, theirs := []turns.Reading{block(30, 5), block(300, 1), block(32, 3)}, []turns.Reading{block(50, 1), block(500, 1), block(54, 1)}
	g := &group{table: TablePublished}
	us := g.newRun(Match{Published: true}, Entry{Name: Spillway}, ours, harness)
	them := g.newRun(Match{}, Entry{Name: Mux}, theirs, harness)
	if got := us.Blocks["cpu_ns"]; !slices.Equal(got, []float64{20, 200, 22}) || us.Extra["cpu_ns"] != 22 || us.Extra["cpu_ns_total"] != 32 {
		t.Errorf("%v, %v", got, us.Extra)
	}
	if us.Extra["pauses"] != 3 || us.Process.GCPauseP99 != 5e-9 || us.Extra["allocs"] != 0 {
		t.Errorf("%v, %v", us.Extra, us.Process)
	}
	if behind(us, []Entry{{Name: Mux}}, []results.Run{them}); them.Extra["behind"] != .5 {
		t.Errorf("behind by %v, want the middle of 20/40, 200/400 and 22/44", them.Extra["behind"])
	}
	if got := g.newRun(Match{}, Entry{Name: Nothing}, harness, harness); got.Extra["cpu_ns"] != 10 {
		t.Errorf("the harness itself costs %v", got.Extra)
	}
}

// made are runs of a session on 16 processors: saves is what pooling saves of the fresh
// build's time, in per cent, and ours the time of Spillway over that of every other
// contestant.
func made(saves map[string]float64, ours float64, allocs float64) []results.Run {
	var out []results.Run
	add := func(setup, scenario, pattern string, repeat int, twin bool, x map[string]float64) {
		blocks := map[string][]float64{}
		for _, key := range []string{"cpu_ns", "wall_ns", "cpu_ns_total", "wall_ns_total"} {
			x[key] = x["cpu_ns"]
			blocks[key] = []float64{x["cpu_ns"], 7 * x["cpu_ns"], x["cpu_ns"]} // a slow round
		}
		out = append(out, results.Run{Setup: setup, Load: scenario, Pattern: pattern, Twin: twin, Repeat: repeat, Elapsed: 1,
			Params: map[string]any{"gomaxprocs": 16.}, Extra: x, Blocks: blocks})
	}
	for repeat := range 4 {
		drift := 1 + .01*float64(repeat)
		for _, scenario := range append([]string{Untagged}, Scenarios...) {
			for _, setup := range []string{Net, AsPublished} {
				fresh := func(pause float64) map[string]float64 {
					return map[string]float64{"cpu_ns": 1000 * drift, "allocs": 20.04, "pause_p99_us": pause, "pauses": 100}
				}
				add(setup, scenario, Fresh, repeat, false, fresh(100))
				add(setup, scenario, Fresh, repeat, true, fresh(101))
				for _, pooled := range []string{Pooled, PooledShort} {
					add(setup, scenario, pooled, repeat, false, map[string]float64{
						"cpu_ns": 1000 * drift * (1 - saves[scenario]/100), "allocs": 20 - allocs, "pause_p99_us": 100 - 20*allocs, "pauses": 100})
				}
			}
			if scenario == Untagged {
				continue
			}
			for _, build := range []string{StdJSON, JSONv2} {
				for _, c := range Tables[TableContest] {
					x := map[string]float64{"cpu_ns": 1000 * drift, "allocs": 10}
					if c == Spillway || c == GinTyped {
						x = map[string]float64{"cpu_ns": 1000 * drift * ours, "allocs": 10 * ours}
					}
					add(contestOf+build, scenario, c, repeat, false, x)
				}
			}
		}
	}
	return out
}

func TestVerdictsFollowTheRuns(t *testing.T) {
	const net, as = "net of the harness", "with the published harness and all that differed"
	like := Classic{}.Judge(made(map[string]float64{JSON: 6.4, Form: -5.4, Untagged: -5.4, Large: 13.1, Parallel: -35, Get: 9.9}, .2, 1), 1)
	for _, c := range []struct {
		id, setup string
		want      float64
	}{
		{"R1", net, 6.4}, {"R1", as, 6.4}, {"R2", net + ", with form tags", 5.4}, {"R2", as + ", answered 400", 5.4}, {"R3", net, 13.1}, {"R4", net, 35}, {"R5", as, 9.9},
		{"R6", net + ", ratio of the mean times", 1 / (1 - .01*(.6*6.4+.2*9.9-.1*5.4+.05*13.1-.05*35))},
		{"R7/allocs", Get, 1}, {"R7/pause", JSON, .8}, {"R/create", JSON, .2}, {"R/create-allocs", JSON, 2}, {"R/get", Get, .2}, {"R/get-allocs", Get, 2},
		{"R/tax", Large + ", on net/http's mux", .2}, {"R/tax-allocs", Form + ", on net/http's mux", -8}, {"R/tax", Get + ", on gin", .2}, {"R/form", Form, .2}, {"R/form-allocs", Form, 2},
	} {
		if got := labtest.Claim(t, like, c.id, c.setup); got.Verdict != results.Holds || math.Abs(got.Measured-c.want) > .001 {
			t.Errorf("%s (%s) %s with %.3f, want %.3f: %s", c.id, c.setup, got.Verdict, got.Measured, c.want, got.Why)
		}
	}
	if got := labtest.Claim(t, like, "R7", "every scenario"); got.Verdict != results.Holds {
		t.Errorf("R7 %s: %s", got.Verdict, got.Why)
	}
	unlike := Classic{}.Judge(made(map[string]float64{}, 1.1, 0), 1)
	for _, c := range unlike {
		// The same garbage has the same pauses: no difference is no verdict. And
		// 11 allocations are too many everywhere.
		if want := results.Fails; c.ID != "R7/pause" && c.Verdict != want {
			t.Errorf("%s (%s) %s, want %s: %s", c.ID, c.Setup, c.Verdict, want, c.Why)
		}
	}
}

func TestContentionNeedsProcessors(t *testing.T) {
	runs := made(map[string]float64{Parallel: -35}, 1, 1)
	for i := range runs {
		runs[i].Params["gomaxprocs"] = 2.
	}
	got := labtest.Claim(t, Classic{}.Judge(runs, 1), "R4", "net of the harness")
	if got.Verdict != results.NeedsHardware || math.Abs(got.Measured-35) > .001 || !strings.Contains(got.Why, "GOMAXPROCS is 2") {
		t.Errorf("%s with %.1f: %s", got.Verdict, got.Measured, got.Why)
	}
}

// The difference of a build from itself is no gain.
func TestAGainWithinTheNoiseIsNone(t *testing.T) {
	runs := made(map[string]float64{JSON: 6.4}, 1, 1)
	for _, r := range runs {
		if r.Twin {
			for i := range r.Blocks["cpu_ns"] {
				r.Blocks["cpu_ns"][i] *= .9
			}
		}
	}
	got := labtest.Claim(t, Classic{}.Judge(runs, 1), "R1", "net of the harness")
	if got.Verdict != results.Inconclusive || math.Abs(got.NoiseFloor-10) > .001 {
		t.Errorf("%s with a floor of %.1f: %s", got.Verdict, got.NoiseFloor, got.Why)
	}
}

func TestWithoutTheBuildThatCountsItSaysHowToGetIt(t *testing.T) {
	runs := slices.DeleteFunc(made(nil, .2, 1), func(r results.Run) bool { return r.Setup == contestOf+JSONv2 })
	got := labtest.Claim(t, Classic{}.Judge(runs, 1), "R/create", JSON)
	if got.Verdict != results.Inconclusive || !strings.Contains(got.Why, "--one-build") || !strings.Contains(got.Why, "With encoding/json: spillway 203 ns") {
		t.Errorf("%s: %s", got.Verdict, got.Why)
	}
}

func TestEveryClaimIsJudgedAsOpenWithoutRuns(t *testing.T) {
	all := Classic{}.Judge(nil, 1)
	for _, c := range claims.R.Claims {
		i := slices.IndexFunc(all, func(j results.OldClaim) bool { return j.ID == c.ID })
		if i < 0 || all[i].Verdict != results.Inconclusive || all[i].Why == "" {
			t.Errorf("%s without runs is not judged as open", c.ID)
		}
	}
}
