package routes

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/results"
)

func TestMain(m *testing.M) { labtest.Main(m, Roles()) }

func tiny() Config {
	return Config{Requests: 8, Rounds: 1, OneBuild: true, MemoryCap: 1 << 30}
}

func TestNothingIsPlannedTwice(t *testing.T) {
	plan, err := Classic{tiny()}.Plan()
	if err != nil || !strings.Contains(plan.Scaled, "only the build with "+thisBuild) {
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
		for _, scenario := range scenarios {
			if want := name != Huma || scenario != Form; seen[contestOf+thisBuild+" · "+scenario+" · "+name] != want {
				t.Errorf("%s, %s: planned %v", name, scenario, !want)
			}
		}
	}
}

func TestContestantsAreMeasuredInTheirProcesses(t *testing.T) {
	for _, table := range []string{tablePublished, tableFiber} {
		g := &group{config: tiny(), table: table, build: thisBuild}
		runs, err := g.measure(t.Context(), 1)
		if err != nil || len(runs) != len(g.todo()) {
			t.Fatalf("%s: %d runs, %v", table, len(runs), err)
		}
		for c, r := range runs {
			if r.Killed != "" || r.Elapsed <= 0 || r.Extra["cpu_ns"] == 0 || c.published != (r.Extra["cpu_ns_total"] > 0) {
				t.Errorf("%v: %+v", c, r)
			}
		}
	}
}

// A contestant with a wrong answer is not measured.
func TestAWrongAnswerIsNoFigure(t *testing.T) {
	c, err := find(overFastHTTP, Fiber)
	if err != nil {
		t.Fatal(err)
	}
	h, err := c.start()
	if err != nil {
		t.Fatal(err)
	}
	s := server{rival: c, handlers: h, lanes: map[block][]harness{}}
	if m := s.run(block{Scenario: JSON, Requests: 1}); m.Failed != "" {
		t.Error(m.Failed)
	}
	if m := s.run(block{Scenario: Untagged, Requests: 1}); !strings.Contains(m.Failed, "answered 404") {
		t.Errorf("%+v", m)
	}
}

func TestAMeasurementThatIsStoppedSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := &group{config: tiny(), table: tableFiber, build: thisBuild}
	if _, err := g.measure(ctx, 1); err == nil {
		t.Error("no error")
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"requests is 0": func(c *Config) { c.Requests = 0 },
		"rounds is -1":  func(c *Config) { c.Rounds = -1 },
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

func TestMiddleOfTheTurnsCounts(t *testing.T) {
	if got := midmean([]float64{1000, 1, 3, 5}); got != 4 {
		t.Errorf("mean of the middle half %v, want 4", got)
	}
	p99, n := pauseP99([]measured{{Pauses: []uint64{98, 1}, Bounds: []float64{1, 3}}, {Pauses: []uint64{1}, Bounds: []float64{2}}})
	if p99 != 2 || n != 100 {
		t.Errorf("p99 of %d pauses is %v, want 2 of 100", n, p99)
	}
}

func TestContextsOutliveTheirHandlersSafelyUnlessPooled(t *testing.T) {
	for _, name := range []string{Spillway, GinTyped, Fresh} {
		got, err := lookLate(t.Context(), lateJob{name, 2000})
		if err != nil || got.Right != 2000 || got.Wrong != 0 || got.Panics != 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if raceEnabled {
		return // the pooled one is a data race by design
	}
	got, err := lookLate(t.Context(), lateJob{Pooled, 2000})
	if err != nil || got.Right != 0 || got.Wrong+got.Panics != 2000 {
		t.Errorf("pooled: %+v, %v", got, err)
	}
	if got.Panics > 0 && !strings.Contains(got.Example, "nil pointer") {
		t.Errorf("panicked with %s", got.Example)
	}
}

// made are runs of a session on 16 processors: saves is what pooling saves of the fresh
// build's time, in per cent, and ours the time of Spillway over that of every other
// contestant.
func made(saves map[string]float64, ours float64, allocs float64) []results.Run {
	var out []results.Run
	add := func(setup, scenario, pattern string, repeat int, twin bool, x map[string]float64) {
		x["wall_ns"], x["wall_ns_total"], x["cpu_ns_total"] = x["cpu_ns"], x["cpu_ns"], x["cpu_ns"]
		out = append(out, results.Run{Setup: setup, Load: scenario, Pattern: pattern, Twin: twin, Repeat: repeat, Elapsed: 1,
			Params: map[string]any{"gomaxprocs": 16.}, Extra: x})
	}
	for repeat := range 4 {
		drift := 1 + .01*float64(repeat)
		for _, scenario := range append([]string{Untagged}, scenarios...) {
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
				for _, c := range overNetHTTP {
					x := map[string]float64{"cpu_ns": 1000 * drift, "allocs": 10}
					if c.name == Spillway || c.name == GinTyped {
						x = map[string]float64{"cpu_ns": 1000 * drift * ours, "allocs": 10 * ours}
					}
					add(contestOf+build, scenario, c.name, repeat, false, x)
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
			r.Extra["cpu_ns"] *= .9
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
	if got.Verdict != results.Inconclusive || !strings.Contains(got.Why, "GOEXPERIMENT=jsonv2") || !strings.Contains(got.Why, "With encoding/json: spillway 203 ns") {
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
