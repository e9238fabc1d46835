package burst

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
)

func TestMain(m *testing.M) { labtest.Main(m, Roles()) }

// tiny is a burst of a tenth of a second.
func tiny() Config {
	return Config{
		Contestants: Names(), Rate: 5_000, Generators: 10, Burst: 100 * time.Millisecond,
		Work: Work{Bytes: 64 << 10, Wait: 2 * time.Millisecond}, MemoryCap: 2 << 30,
	}
}

func TestEveryContestantAccountsForEveryJob(t *testing.T) {
	plan, err := Classic{tiny()}.Plan()
	if err != nil || len(plan.Cells) != len(Names()) || len(plan.Demos) != 2 {
		t.Fatalf("%d cells, %d demonstrations, %v", len(plan.Cells), len(plan.Demos), err)
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
		if sum != r.Offered || r.Offered == 0 || r.Offered > 500 || ok.Count == 0 || ok.Latency.Count() != ok.Count || r.Of("timeout").Count > 0 {
			t.Errorf("%s: offered %d, outcomes %+v", cell.Pattern, r.Offered, r.Outcomes)
		}
		if r.Killed != "" || ok.Latency.Min() < int64(2*time.Millisecond) || r.Process.PeakGoroutines < 10 || r.Process.Mallocs == 0 || r.Process.CPUSeconds < 0 {
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
	c.Contestants, c.Work = []string{Naive}, Work{Bytes: 500 << 10, Wait: 5 * time.Second}
	c.Rate, c.Burst, c.MemoryCap = 600, 30*time.Second, 160<<20 // slow enough to be watched, every 100 ms
	r, err := c.run(t.Context(), Naive)
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
			if counts["panics, as printed"] == 0 || counts["panics, ours"] != 0 || counts["accepted jobs lost, ours"] != 0 {
				t.Errorf("%s: %v", d.ID, counts)
			}
		default:
			t.Errorf("no test checks %s", d.ID)
		}
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"unknown contestant": func(c *Config) { c.Contestants = []string{"magic"} },
		"named twice":        func(c *Config) { c.Contestants = []string{Naive, Naive} },
		"no contestant":      func(c *Config) { c.Contestants = []string{} },
		"rate is -1":         func(c *Config) { c.Rate = -1 },
		"generators is 0":    func(c *Config) { c.Generators = 0 },
		"the burst is 1ms":   func(c *Config) { c.Burst = time.Millisecond },
		"the work is 1":      func(c *Config) { c.Work.Bytes = 1 },
	} {
		c := tiny()
		change(&c)
		if _, err := (Classic{c}).Plan(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

func TestScalingCutsOnlyTheLength(t *testing.T) {
	full, part := Full(), Defaults()
	part.Burst = full.Burst
	if full.scaled() != "" || part.scaled() != "" {
		t.Errorf("full size says %q, the default of full length %q", full.scaled(), part.scaled())
	}
	if got := Defaults().scaled(); !strings.Contains(got, "grows from 100 workers to 921 at most instead of 5000") {
		t.Errorf("scaled: %s", got)
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

// made is a made-up run.
func made(name string, repeat int, ok, refused uint64, mean time.Duration, rss uint64) results.Run {
	var latency, prompt histogram.Histogram
	latency.RecordN(int64(mean), ok)
	prompt.RecordN(2_000, refused)
	return results.Run{
		Setup: setup, Load: load, Pattern: name, Repeat: repeat, Elapsed: 10, Offered: ok + refused,
		Outcomes: []results.Outcome{{Kind: "ok", Count: ok, Latency: &latency}, {Kind: "rejected", Count: refused, Latency: &prompt}},
		Process:  results.Process{PeakRSS: rss, PeakGoroutines: 5_900},
		Params:   map[string]any{"max_workers": 5_000, "generators": 1_000, "work_ms": 20.0, "generator": ""},
		Extra:    map[string]float64{"work_share": .6, "submit_share": .04, "work_us": 100, "cpus": 2},
	}
}

func verdicts(claims []results.OldClaim) map[string]results.OldClaim {
	out := map[string]results.OldClaim{}
	for _, c := range claims {
		out[c.ID+" "+c.Setup] = c
	}
	return out
}

func TestVerdictsFollowTheRuns(t *testing.T) {
	var runs []results.Run
	for n := range 3 {
		naive := made(Naive, n, 1_000, 0, 2*time.Second, 10<<30)
		naive.Killed, naive.Extra["work_share"] = "killed above the memory cap of 10240 MiB after 1s", .1
		runs = append(runs, naive,
			made(Published, n, 20_000, 9_000_000, 400*time.Millisecond, 4<<30),
			made(Reused, n, 300_000, 9_000_000, 30*time.Millisecond, 1<<30),
			made(Spillway, n, 1_000, 100, 3*time.Second, 4<<30))
		runs[len(runs)-1].Process.PeakGoroutines = 7_000
		runs[len(runs)-1].Extra = map[string]float64{"work_share": .3, "submit_share": .4}
	}
	got := verdicts(Classic{}.Judge(runs, 1))
	for id, want := range map[string]results.Verdict{
		"B1 " + Published: results.Holds, // killed, though 2.5x is no 10x
		"B2 " + Published: results.Holds, "B2 " + Spillway: results.Fails,
		"B3 " + Published: results.Holds, "B3 " + Spillway: results.Fails,
		"B4 " + Published: results.Holds, "B4 " + Spillway: results.Fails,
		"B5/refused " + Published: results.Holds, "B5/refused " + Spillway: results.Fails,
		"B5/prompt " + Published: results.Holds,
		"B6/pool " + Published:   results.Holds, "B6/pool " + Spillway: results.Fails,
		"B6/naive " + Naive: results.Holds,
		"B/jobs " + Reused:  results.Holds, "B/memory " + Reused: results.Holds,
		"B/latency " + Reused: results.Holds, "B/latency " + Spillway: results.Fails,
		"B/refusals " + Reused: results.Holds, "B/refusals " + Spillway: results.Fails,
	} {
		if c := got[id]; c.Verdict != want {
			t.Errorf("%s %q, want %s: %s", id, c.Verdict, want, c.Why)
		}
	}
	if why := got["B2 "+Published].Why; !strings.Contains(why, "In repeat 1 naive was killed above the memory cap") {
		t.Errorf("B2 does not say what happened to naive: %s", why)
	}
	for i := range runs {
		if runs[i].Pattern == Naive {
			runs[i].Killed = ""
		}
	}
	if c := verdicts(Classic{}.Judge(runs, 1))["B1 "+Published]; c.Verdict != results.Fails {
		t.Errorf("2.5x the memory and not killed: %s, %s", c.Verdict, c.Why)
	}
}

func TestVerdictsWithoutRunsSaySo(t *testing.T) {
	for _, c := range (Classic{}).Judge(nil, 1) {
		if c.Verdict != results.Inconclusive || !strings.Contains(c.Why, "was not run") {
			t.Errorf("%s %s: %s, %s", c.ID, c.Setup, c.Verdict, c.Why)
		}
	}
	naive := made(Naive, 0, 0, 0, 0, 1<<30)
	naive.Killed = "killed above the memory cap of 1024 MiB after 1s"
	c := verdicts(Classic{}.Judge([]results.Run{naive, made(Published, 0, 1, 1, 1, 1)}, 1))["B3 "+Published]
	if !strings.Contains(c.Why, "before it had finished a single job") {
		t.Errorf("B3: %s", c.Why)
	}
}

func TestEveryClaimOfTheFamilyIsJudged(t *testing.T) {
	judged := Classic{}.Judge([]results.Run{made(Reused, 0, 1, 1, 1, 1)}, 1)
	for _, c := range claims.B.Claims {
		id := strings.NewReplacer("B1/memory", "B1", "B1/killed", "B1").Replace(c.ID)
		if !slices.ContainsFunc(judged, func(j results.OldClaim) bool { return j.ID == id }) {
			t.Errorf("%s is not judged", c.ID)
		}
	}
}
