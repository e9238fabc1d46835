package burst

import (
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/judge"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/ledger/planted"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
)

func TestMain(m *testing.M) { labtest.Main(m, Roles()) }

// tiny is a burst of a tenth of a second.
func tiny() Config {
	return Config{
		Time: 100 * time.Millisecond, OthersTime: 100 * time.Millisecond, Rate: 5_000, Generators: 10,
		Work: Work{Bytes: 64 << 10, Wait: 2 * time.Millisecond}, MemoryCap: 2 << 10,
	}
}

func TestASmallSessionAnswersEveryClaim(t *testing.T) {
	soak.WithoutRace(t)
	c := tiny()
	c.Time, c.OthersTime = 20*time.Millisecond, 20*time.Millisecond
	res, runs, err := experiment.Session{Dir: t.TempDir() + "/results", Repeats: judge.MinRepeats, Seed: 1}.Run(t.Context(), Experiment, &c)
	if err != nil || res.Partial != "" || len(res.Demos) != 2 {
		t.Fatalf("%d demonstrations, partial %q, %v", len(res.Demos), res.Partial, err)
	}
	if want := judge.MinRepeats * (len(Names()) + 1); len(runs) != want { // and naive's twin
		t.Errorf("%d runs, want %d", len(runs), want)
	}
	for _, c := range res.Claims {
		if c.Verdict != results.Inconclusive || !strings.Contains(c.Why, "it takes the published 30s (--full)") || len(c.Answers) == 0 {
			t.Errorf("%s, of a short burst, %s: %s", c.ID, c.Verdict, c.Why)
		}
	}
}

func TestEveryRowFollowsItsFigures(t *testing.T) {
	plan, err := experiment.Sized[Config]("full").plan()
	if err != nil {
		t.Fatal(err)
	}
	var runs []results.Run
	for _, k := range plan.Keys() {
		runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Elapsed: 1})
	}
	if want := len(Names()) + 3; len(runs) != want { // twins of naive and of both that reuse
		t.Errorf("%d cells in a full burst, want %d", len(runs), want)
	}
	planted.Check(t, Experiment.Family, runs)
}

func TestEveryContestantAccountsForEveryJob(t *testing.T) {
	plan, err := tiny().plan()
	if err != nil || len(plan.Demos) != 2 {
		t.Fatalf("%d demonstrations, %v", len(plan.Demos), err)
	}
	for _, cell := range plan.Cells {
		r, err := cell.Run(t.Context(), experiment.Trial{})
		if err != nil {
			t.Fatalf("%s: %v", cell.Pattern, err)
		}
		var sum uint64
		for _, o := range r.Outcomes {
			sum += o.Count
		}
		ok := r.Of("ok")
		if sum != r.Offered || r.Offered == 0 || r.Offered > 500 || ok.Latency.Count() != ok.Count || r.Of("timeout").Count > 0 {
			t.Errorf("%s: offered %d, outcomes %+v", cell.Pattern, r.Offered, r.Outcomes)
		}
		if r.Killed != "" || ok.Count > 0 && ok.Latency.Min() < int64(2*time.Millisecond) || r.Process.Mallocs == 0 || r.Process.CPUSeconds < 0 {
			t.Errorf("%s: killed %q, least latency %d, process %+v", cell.Pattern, r.Killed, ok.Latency.Min(), r.Process)
		}
		if reused := r.Process.ReuseRate >= 0; reused != reuses(cell.Pattern) {
			t.Errorf("%s: reuse rate %v", cell.Pattern, r.Process.ReuseRate)
		}
		if cell.Pattern != Published && r.Offered != 500 {
			t.Errorf("%s: offered %d of 500: a generator that is late must catch up", cell.Pattern, r.Offered)
		}
	}
}

// The first version asked the contestant for its progress, and a killed contestant
// had not answered.
func TestAKilledContestantLeavesItsCounts(t *testing.T) {
	if !contestant.CapEnforced {
		t.Skip("the memory cap needs Linux")
	}
	c := tiny()
	c.Work = Work{Bytes: 500 << 10, Wait: 5 * time.Second}
	c.Rate, c.Time, c.MemoryCap = 600, 30*time.Second, 160 // slow enough to be watched, every 100 ms
	r, err := c.run(t.Context(), Naive, c.Time)
	if err != nil || !strings.Contains(r.Killed, "memory cap of 160 MiB") {
		t.Fatalf("killed %q, %v", r.Killed, err)
	}
	if r.Offered == 0 || r.Of("error").Count == 0 || r.Of("timeout").Count > 0 || r.Process.PeakRSS < 160<<20 || r.Process.PeakGoroutines <= 10 {
		t.Errorf("offered %d, outcomes %+v, process %+v", r.Offered, r.Outcomes, r.Process)
	}
}

// A measured goroutine kept its thread while the collector made it wait. Ten
// thousand of naive's goroutines did, which ended the process.
func TestFewThreadsAreHeldUnderTheClock(t *testing.T) {
	const jobs = 2 * mostClocked
	var b bench
	var all, inside sync.WaitGroup
	var clocked atomic.Int64
	inside.Add(jobs)
	for range jobs {
		all.Go(func() {
			if _, ok := b.clock(func() { inside.Done(); inside.Wait() }); ok {
				clocked.Add(1)
			}
		})
	}
	all.Wait()
	if n := clocked.Load(); n != mostClocked {
		t.Errorf("%d of %d jobs at once were under the clock, want %d", n, jobs, mostClocked)
	}
	if _, ok := b.clock(func() {}); !ok {
		t.Error("no goroutine is being measured any more, and there is still no room")
	}
}

func TestTheDemonstrationsShowTheFaultAndOursHasNone(t *testing.T) {
	for _, d := range demonstrations.Demos() {
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
		case "request-context":
			if counts["cut off, as printed"] == 0 || counts["cut off, ours"] != 0 {
				t.Errorf("%s: %v", d.ID, counts)
			}
		case "shutdown-race":
			if usage.Race {
				continue
			}
			if counts["panics, ours"] != 0 || counts["accepted jobs lost, ours"] != 0 {
				t.Errorf("%s: %v", d.ID, counts)
			}
		default:
			t.Errorf("no test checks %s", d.ID)
		}
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"unknown contestant":                     func(c *Config) { c.Contestant = []string{"magic"} },
		"rate is -1: want more than 0":           func(c *Config) { c.Rate = -1 },
		"generators is 0: want at least 1":       func(c *Config) { c.Generators = 0 },
		"time is 1ms: want 10ms to 1h":           func(c *Config) { c.Time = time.Millisecond },
		"others-time is 2h0m0s: want 10ms to 1h": func(c *Config) { c.OthersTime = 2 * time.Hour },
		"bytes is 1: want at least 4096":         func(c *Config) { c.Bytes = 1 },
		"wait is -1ns: want at least 0s":         func(c *Config) { c.Wait = -1 },
		"memory-cap is -1: want at least 0":      func(c *Config) { c.MemoryCap = -1 },
	} {
		c := tiny()
		change(&c)
		if _, _, err := (experiment.Session{}).Run(t.Context(), Experiment, &c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

func TestTheFullSizeIsThePublishedOne(t *testing.T) {
	want := Config{Time: publishedTime, OthersTime: publishedTime, Rate: 1e6, Generators: 1_000, Work: PublishedWork}
	got := experiment.Sized[Config]("full")
	if got.Contestant != nil {
		t.Errorf("only %v", got.Contestant)
	}
	if got.Work != want.Work || got.Time != want.Time || got.OthersTime != want.OthersTime || got.Rate != want.Rate || got.Generators != want.Generators {
		t.Errorf("got %+v, want %+v", got, want)
	}
	plan, err := experiment.Sized[Config]("").plan()
	if takes := plan.Expect(5); err != nil || takes > 5*time.Minute {
		t.Errorf("by default it takes %v, %v", takes, err)
	}
}

func TestTallyCountsAsAHistogram(t *testing.T) {
	var lean tally
	var twin histogram.Histogram
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		v := rng.Int64() >> rng.IntN(63)
		lean.record(v)
		twin.Record(v)
	}
	lean.record(0)
	twin.Record(0)
	got := lean.histogram()
	if got.Count() != twin.Count() {
		t.Fatalf("%d values, want %d", got.Count(), twin.Count())
	}
	for _, q := range []float64{0, .1, .5, .9, .99, 1} {
		if a, b := float64(got.Quantile(q)), float64(twin.Quantile(q)); a < .99*b || a > 1.01*b {
			t.Errorf("quantile %v is %v, want %v", q, a, b)
		}
	}
}

// made is a made-up run of the whole burst.
func made(name string, repeat int, ok, refused uint64) results.Run {
	var latency, prompt histogram.Histogram
	latency.RecordN(int64(30*time.Millisecond), ok)
	prompt.RecordN(2_000, refused)
	return results.Run{
		Setup: setup, Load: load, Pattern: name, Repeat: repeat, Elapsed: 30, Offered: ok + refused + 1,
		Outcomes: []results.Outcome{{Kind: "ok", Count: ok, Latency: &latency}, {Kind: "rejected", Count: refused, Latency: &prompt}},
		Process:  results.Process{Usage: usage.Usage{PeakRSS: 1 << 30, PeakGoroutines: 5_900}},
		Params:   map[string]any{"burst_seconds": 30.0, "generator": ""},
		Extra:    map[string]float64{"work_percent": 60, "submit_percent": 4, "work_ms": 20, "allowed": 6_000},
	}
}

// session is five repeats of a naive run and of the published shape, changed.
func session(naive, pool func(*results.Run)) map[string]results.Claim {
	var runs []results.Run
	for n := range 9 {
		a, b := made(Naive, n, 1_000, 0), made(Published, n, 20_000, 9_000_000)
		naive(&a)
		pool(&b)
		runs = append(runs, a, b)
	}
	out := map[string]results.Claim{}
	for _, c := range family.Judge(ledger.NewEvidence(runs, 1)) {
		out[c.ID] = c
	}
	return out
}

func same(*results.Run) {}

func killEarly(r *results.Run) {
	*r = made(Naive, r.Repeat, 0, 0)
	r.Killed = "killed above the memory cap of 1024 MiB after 1s"
}

func TestWhatWasKilledHasFinishedWhatItCounted(t *testing.T) {
	got := session(killEarly, same)
	for id, want := range map[string]results.Verdict{"B1": results.Holds, "B2": results.Holds, "B3": results.Inconclusive, "B4": results.Holds, "B5": results.Holds} {
		if got[id].Verdict != want {
			t.Errorf("%s %s, want %s: %s", id, got[id].Verdict, want, got[id].Why)
		}
	}
	if m := got["B2"].Answers[0].Measured; m != 0 {
		t.Errorf("naive finished %v %% of the pool's jobs and had none finished", m)
	}
	if why := got["B3"].Why; !strings.Contains(why, "--memory-cap") || !strings.Contains(why, "In repeat 1 naive was killed above the memory cap") {
		t.Errorf("B3: %s", why)
	}
	if why := session(func(r *results.Run) {
		*r = results.Run{Setup: setup, Load: load, Pattern: Naive, Repeat: r.Repeat, Elapsed: 1, Killed: "killed", Params: map[string]any{"generator": ""}}
	}, same)["B2"].Why; !strings.Contains(why, "jobs finished") || !strings.Contains(why, "missing") {
		t.Errorf("without counters: %s", why)
	}
	if c := session(same, same)["B1"]; c.Verdict != results.Fails {
		t.Errorf("as much memory and not killed: %s, %s", c.Verdict, c.Why)
	}
}

func TestUnequalLoadsAreNotCompared(t *testing.T) {
	bound := func(r *results.Run) { r.Params["generator"] = "generator-bound: 9 a second were offered of 10" }
	for name, got := range map[string]results.Claim{"naive": session(bound, same)["B2"], "pool": session(same, bound)["B2"]} {
		if got.Verdict != results.Inconclusive || !strings.Contains(got.Why, "not offered the same load") || !strings.Contains(got.Why, "9 a second") {
			t.Errorf("%s: %s, %s", name, got.Verdict, got.Why)
		}
	}
}

func TestWhatTheMachineLacksIsNamed(t *testing.T) {
	here := func(procs, mib int, change func(*results.Run)) func(*results.Run) {
		return func(r *results.Run) {
			change(r)
			r.Params["gomaxprocs"], r.Params["machine_mib"] = procs, mib
		}
	}
	bound := func(r *results.Run) { r.Params["generator"] = "generator-bound: 9 a second were offered of 10" }
	for _, c := range []struct {
		id         string
		procs, mib int
		naive      func(*results.Run)
		want       results.Verdict
		why        string
	}{
		{"B2", 2, 24_000, bound, results.NeedsHardware, "10 processors, and GOMAXPROCS is 2"},
		{"B2", 10, 24_000, bound, results.Inconclusive, "not offered the same load"},
		{"B3", 2, 24_000, killEarly, results.NeedsHardware, "50.9 GB, and there are 25.2"},
		{"B3", 2, 64_000, killEarly, results.Inconclusive, "--memory-cap"},
		{"B3", 2, 24_000, same, results.Fails, ""},
	} {
		got := session(here(c.procs, c.mib, c.naive), here(c.procs, c.mib, same))[c.id]
		if got.Verdict != c.want || !strings.Contains(got.Why, c.why) {
			t.Errorf("%s with %d processors and %d MiB: %s, %s", c.id, c.procs, c.mib, got.Verdict, got.Why)
		}
	}
}

func TestAShortBurstDecidesNothingAboutAnother(t *testing.T) {
	short := func(r *results.Run) { r.Params["burst_seconds"] = 2.0 }
	for id, c := range session(same, short) {
		if strings.HasPrefix(id, "B/") {
			continue // ours were not run
		}
		for _, a := range c.Answers {
			if a.Setup == Published && (a.Verdict != results.Inconclusive || !strings.Contains(a.Why, "published-shape was offered 2 s") || a.Repeats != 9) {
				t.Errorf("%s/%s %s in %d repeats: %s", id, a.Part, a.Verdict, a.Repeats, a.Why)
			}
		}
	}
}
