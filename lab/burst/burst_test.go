package burst

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/ledger/ledgertest"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/usage"
)

func TestMain(m *testing.M) { labtest.Main(m, Roles()) }

// tiny is a burst of a tenth of a second.
func tiny() Config {
	return Config{
		Contestant: Names(), Time: 100 * time.Millisecond, Rate: 5_000, Generators: 10,
		Work: Work{Bytes: 64 << 10, Wait: 2 * time.Millisecond}, MemoryCap: 2 << 10,
	}
}

func TestASmallSessionAnswersEveryClaim(t *testing.T) {
	soak.WithoutRace(t)
	c := tiny()
	c.Time = 20 * time.Millisecond
	res, runs, err := experiment.Session{Dir: t.TempDir() + "/results", Repeats: 1, Seed: 1}.Run(t.Context(), Experiment, &c)
	if err != nil {
		t.Fatal(err)
	}
	// A machine that is busy elsewhere cannot fill a queue of 100,000 in 0.3 s.
	want := len(Names()) + 4 // twins of ours that reuse, and two pools that shrink
	if !strings.Contains(res.Partial, "the pool did not grow") && (res.Partial != "" || len(runs) != want) {
		t.Errorf("%d runs, want %d; partial %q", len(runs), want, res.Partial)
	}
	for _, c := range res.Claims {
		if c.ID == "B7" { // which has a burst of its own
			continue
		}
		if c.Verdict != results.Inconclusive || !strings.Contains(c.Why, "it takes the published 30s, without --time") || len(c.Answers) == 0 {
			t.Errorf("%s, of a short burst, %s: %s", c.ID, c.Verdict, c.Why)
		}
	}
}

func TestEveryRowFollowsItsFigures(t *testing.T) {
	runs := labtest.Planned(experiment.Sized[Config]("full").plan())
	if want := len(Names()) + 4; len(runs) != want { // twins of ours that reuse, and two pools that shrink
		t.Errorf("%d cells in a full burst, want %d", len(runs), want)
	}
	ledgertest.Check(t, Experiment.Family, runs)
}

func TestEveryContestantAccountsForEveryJob(t *testing.T) {
	for _, name := range Names() {
		w, err := tiny().run(t.Context(), name, nil, time.Hour) // however busy the machine is
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r := w.out
		var sum uint64
		for _, o := range r.Outcomes {
			sum += o.Count
		}
		ok := r.Of("ok")
		if sum != r.Offered || ok.Latency.Count() != ok.Count || r.Of("timeout").Count > 0 {
			t.Errorf("%s: offered %d, outcomes %+v", name, r.Offered, r.Outcomes)
		}
		if r.Killed != "" || ok.Count > 0 && ok.Latency.Min() < int64(2*time.Millisecond) || r.Process.Mallocs == 0 || r.Process.CPUSeconds < 0 {
			t.Errorf("%s: killed %q, least latency %d, process %+v", name, r.Killed, ok.Latency.Min(), r.Process)
		}
		if reused := r.Process.ReuseRate >= 0; reused != reuses(name) {
			t.Errorf("%s: reuse rate %v", name, r.Process.ReuseRate)
		}
		parks := name == Published || name == PublishedReused
		if name != Stopped && (r.Offered > 500 || r.Offered < 500 && !parks) {
			t.Errorf("%s: offered %d of 500: a generator that is late must catch up", name, r.Offered)
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
	pool := &watcher{moments: []moment{{.1, 2, 1.5, 2.5}, {100, 9, 1, 1}}, out: results.Run{Process: results.Process{Usage: usage.Usage{PeakRSS: 20 << 20}}}}
	w, err := c.run(t.Context(), Naive, pool, patience)
	if err != nil {
		t.Fatal(err)
	}
	r := w.out
	if !strings.Contains(r.Killed, "memory cap of 160 MiB") || r.Params["cap"] != "as set, 8.0 times the peak of the pool" {
		t.Fatalf("killed %q, by the cap %q", r.Killed, r.Params["cap"])
	}
	if r.Extra["pool_finished"] != 2 || r.Extra["pool_reported_ms"] != 1.5 || r.Extra["pool_true_ms"] != 2.5 {
		t.Errorf("what the pool had finished then: %v", r.Extra)
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

func TestNaivesMemoryCapIsMadeFromWhatThePoolTook(t *testing.T) {
	for _, c := range []struct {
		set, machine int
		pool         uint64 // MiB
		want         int
		what         string
	}{
		{0, 24_000, 0, 12_000, "half of the machine's memory"},
		{0, 24_000, 1_000, 11_000, "made from what the pool took, 11.0 times the peak of the pool"},
		{0, 24_000, 4_000, 12_000, "half of the machine's memory, 3.0 times the peak of the pool"},
		{9_000, 24_000, 500, 9_000, "as set, 18.0 times the peak of the pool"},
		{9_000, 24_000, 0, 9_000, "as set"},
	} {
		if mib, what := (Config{MemoryCap: c.set}).memoryCap(c.machine, c.pool<<20); mib != c.want || what != c.what {
			t.Errorf("%+v: %d, %s", c, mib, what)
		}
	}
}

// Each generator had a part of the schedule of its own, and those that waited behind the
// jobs that they had spawned did not offer theirs until the burst was nearly over.
func TestOneGeneratorThatIsFreeOffersAllThatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var submitted, blocked atomic.Int64
		release := make(chan struct{})
		b := bench{job: job{Config: Config{Rate: 1_000, Generators: 10, Time: time.Second}}, counters: new(counters), started: time.Now()}
		b.target = &target{submit: func(task) bool {
			submitted.Add(1)
			if blocked.Add(1) < 10 { // all but one
				<-release
			}
			return false
		}}
		var all sync.WaitGroup
		for i := range b.Generators {
			all.Go(func() { b.generate(t.Context(), i) })
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := submitted.Load(); n < 900 || b.taken.Load() != 1_000 {
			t.Errorf("%d of 1000 jobs were submitted by the one that was free, %d were taken", n, b.taken.Load())
		}
		close(release)
		all.Wait()
		if s := b.sum(); s.counts[jobsOffered] != 1_000 || s.counts[jobsRefused] != 1_000 {
			t.Errorf("offered and refused: %v", s.counts)
		}
	})
}

// With a hundred thousand goroutines ahead of them, generators that became runnable had
// their next turn a minute later.
func TestWhereGeneratorsWaitBehindTheirJobsTheJobsOfferWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bench{job: job{Config: Config{Rate: 1_000, Time: time.Second}, Name: Naive}, counters: new(counters), started: time.Now(), memory: NewMemory(page, false)}
		b.target = &target{submit: func(task) bool { return true }}
		time.Sleep(500 * time.Millisecond)
		b.work(&b.shards[0], 0)
		if got := b.sum().counts[jobsOffered]; got != 500 {
			t.Errorf("a job offered %d of the 500 jobs that were due", got)
		}
		b.Name = Channel
		time.Sleep(500 * time.Millisecond)
		b.work(&b.shards[0], 0)
		if got := b.sum().counts[jobsOffered]; got != 500 {
			t.Errorf("with workers, a job of which offers nothing, %d jobs were offered", got)
		}
	})
}

// What was left behind a naive run or in a queue of 100,000 took a minute to end.
func TestAJobThatBeginsAfterTheRunIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bench{job: job{Config: Config{Rate: 1, Time: time.Second}, Patience: patience}, counters: new(counters), started: time.Now(), memory: NewMemory(page, false)}
		b.target = &target{submit: func(task) bool { return true }}
		for _, want := range []uint64{1, 1} {
			b.work(&b.shards[0], 0)
			if got := b.done.histogram(); got.Count() != want {
				t.Errorf("%d jobs finished after %v, want %d", got.Count(), b.now(), want)
			}
			time.Sleep(b.Time + patience)
		}
	})
}

func TestWhatIsOfferedLateIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bench{job: job{Config: Config{Rate: 1_000, Generators: 1, Time: time.Second}}, counters: new(counters), started: time.Now()}
		b.target = &target{submit: func(task) bool {
			if b.now() < 300*time.Millisecond {
				time.Sleep(300 * time.Millisecond)
			}
			return false
		}}
		b.generate(t.Context(), 0) // begins at 0.1 s and is held up until 0.4 s
		if got := b.sum().counts[jobsLate]; got != 200 {
			t.Errorf("%d late jobs, want those due from 0.1 to 0.3 s", got)
		}
	})
}

func TestWhatWasMissedIsSaid(t *testing.T) {
	for _, c := range []struct {
		offered, refused, done, late int64
		said, starved                bool
	}{
		{1_000, 900, 100, 50, false, false},
		{1_000, 900, 100, 51, true, false},
		{949, 849, 100, 0, true, false},
		{900, 0, 900, 0, true, true},
		{500, 251, 249, 0, true, false},
		{500, 249, 251, 0, true, true},
		{950, 0, 950, 0, false, false},
	} {
		w := watcher{job: job{Config: Config{Rate: 1_000, Time: time.Second}}, counters: new(counters)}
		w.ended.Store(int64(time.Second))
		w.shards[0].add(jobsLate, c.late)
		out := results.Run{Offered: uint64(c.offered), Elapsed: 1, Params: map[string]any{}, Extra: map[string]float64{},
			Outcomes: []results.Outcome{{Kind: "ok", Count: uint64(c.done)}, {Kind: "rejected", Count: uint64(c.refused)}}}
		w.missed(&out)
		_, said := out.Params["generator"]
		if starved := out.Params["starved"] == true; said != c.said || starved != c.starved || out.Extra["missed"] != float64(c.late+1_000-c.offered) {
			t.Errorf("%+v: %v, %v", c, out.Params, out.Extra)
		}
	}
}

func TestAPoolThatShrinksKeepsItsMinimum(t *testing.T) {
	for _, name := range []string{Published, Spillway} {
		synctest.Test(t, func(t *testing.T) {
			got, err := shrink(t.Context(), name)
			if err != nil || got["most_percent"] < 200 || got["left_percent"] > 110 {
				t.Errorf("%s: %v, %v", name, got, err)
			}
			if name == Spillway && got["least_percent"] < 100 { // the published shape may fall below it
				t.Errorf("%s: %v", name, got)
			}
		})
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
		Params:   map[string]any{"burst_seconds": 30.0, "per_processor": 100_000.0},
		Extra:    map[string]float64{"pool_finished": 10_000, "reported_ms": 30, "true_ms": 30, "pool_reported_ms": 30, "pool_true_ms": 30, "work_percent": 60, "submit_percent": 4, "work_ms": 20, "allowed": 6_000},
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
	delete(r.Extra, "reported_ms")
	r.Extra["true_ms"] = 300
	r.Killed, r.Params["cap"] = "killed above the memory cap of 1024 MiB after 1s", "half of the machine's memory, 1.1 times the peak of the pool"
}

func TestWhatWasKilledHasFinishedWhatItCounted(t *testing.T) {
	got := session(killEarly, same)
	for id, want := range map[string]results.Verdict{"B1": results.Inconclusive, "B2": results.Holds, "B3": results.Inconclusive, "B4": results.Holds, "B5": results.Holds} {
		if got[id].Verdict != want {
			t.Errorf("%s %s, want %s: %s", id, got[id].Verdict, want, got[id].Why)
		}
	}
	if m := got["B2"].Answers[0].Measured; m != 0 {
		t.Errorf("naive finished %v %% of the pool's jobs and had none finished", m)
	}
	if why := got["B1"].Why; !strings.Contains(why, "In repeat 1 naive was killed above the memory cap of 1024 MiB after 1s (half of the machine's memory, 1.1 times the peak of the pool)") {
		t.Errorf("B1: %s", why)
	}
	if why := got["B3"].Why; !strings.Contains(why, "mean latency") || !strings.Contains(why, "missing") {
		t.Errorf("B3, without a job that naive finished: %s", why)
	}
	if why := session(func(r *results.Run) {
		*r = results.Run{Setup: setup, Load: load, Pattern: Naive, Repeat: r.Repeat, Elapsed: 1, Killed: "killed"}
	}, same)["B2"].Why; !strings.Contains(why, "jobs finished") || !strings.Contains(why, "missing") {
		t.Errorf("without counters: %s", why)
	}
	if c := session(same, same)["B1"]; c.Verdict != results.Fails {
		t.Errorf("as much memory and not killed: %s, %s", c.Verdict, c.Why)
	}
	late := func(r *results.Run) { r.Killed, r.Params["machine_mib"] = contestant.Overdue, 24_000 }
	if c := session(late, same)["B1"]; c.Verdict != results.NeedsHardware {
		t.Errorf("as much memory when it should have ended: %s, %s", c.Verdict, c.Why)
	}
}

// What naive took when it was killed is the least that it takes. Being killed by a cap near what the pool takes
// shows nothing: such a cap once decided the claim.
func TestAKilledNaiveTookAtLeastItsCap(t *testing.T) {
	killedAt := func(times uint64, mib int) func(*results.Run) {
		return func(r *results.Run) {
			r.Killed, r.Process.PeakRSS, r.Params["machine_mib"] = "killed", times<<30, mib
		}
	}
	for _, c := range []struct {
		times uint64
		mib   int
		want  results.Verdict
	}{{11, 24_000, results.Holds}, {5, 24_000, results.NeedsHardware}, {5, 64_000, results.Inconclusive}} {
		for _, a := range session(killedAt(c.times, c.mib), same)["B1"].Answers {
			if a.Setup == Published && a.Verdict != c.want {
				t.Errorf("%s, killed at %d times the memory of the pool on a machine of %d MiB: %s, %s", a.Part, c.times, c.mib, a.Verdict, a.Why)
			}
		}
	}
}

// With eleven times the memory of the pool the lab may end a naive run that could go on.
func TestANaiveThatTheLabCutShortIsNotSaidToFinishLess(t *testing.T) {
	cut := func(elapsed float64, cap string) func(*results.Run) {
		return func(r *results.Run) { r.Killed, r.Elapsed, r.Params["cap"] = "killed", elapsed, cap }
	}
	for _, c := range []struct { // naive finishes 1,000 jobs, the pool 20,000
		elapsed float64
		cap     string
		want    results.Verdict
	}{{3, byPool + ", 11.0 times", results.Inconclusive}, {10, byPool + ", 11.0 times", results.Holds}, {3, "half of the machine's memory", results.Holds}} {
		if got := session(cut(c.elapsed, c.cap), same)["B2"]; got.Verdict != c.want {
			t.Errorf("killed after %v s, %s: %s, %s", c.elapsed, c.cap, got.Verdict, got.Why)
		}
	}
}

// What waits counts with its age: the mean of what was finished leaves out nearly all of naive's jobs.
func TestTheTrueLatencyCountsWhatWaits(t *testing.T) {
	var c counters
	s := &c.shards[0]
	for _, at := range []time.Duration{0, 10, 20, 30} { // the first two are finished after 5 and 25 ms
		s.add(jobsOffered, 1)
		s.add(acceptedAt, int64(at*time.Millisecond))
	}
	c.done.record(int64(5 * time.Millisecond))
	c.done.record(int64(25 * time.Millisecond))
	s.add(finishedAt, int64(10*time.Millisecond))
	s.add(jobsRan, int64(8*time.Millisecond))
	got := c.sum()
	if ms, want := got.trueLatency(50*time.Millisecond), float64(5+25+30+20)/4; math.Abs(ms-want) > .05 {
		t.Errorf("%v ms, want %v", ms, want)
	}
	if ms := got.reported(); ms != 4 {
		t.Errorf("as the source counts %v ms, want 4", ms)
	}
}

func TestLatencyIsThatOfTheMomentWhenNaiveEnded(t *testing.T) {
	for ms, want := range map[float64]results.Verdict{3: results.Holds, 30: results.Fails} { // naive: 30
		got := session(func(r *results.Run) {
			r.Killed, r.Extra["pool_reported_ms"], r.Extra["pool_true_ms"] = "killed", ms, ms
		}, same)["B3"]
		if got.Verdict != want {
			t.Errorf("the pool's was %v ms then: %s, %s", ms, got.Verdict, got.Why)
		}
	}
}

func TestUnequalLoadsAreNotCompared(t *testing.T) {
	bound := func(starved bool) func(*results.Run) {
		return func(r *results.Run) {
			r.Params["generator"], r.Params["starved"] = "generator-bound: 9 of 10", starved
		}
	}
	for _, id := range []string{"B2", "B3"} {
		for name, got := range map[string]results.Claim{"naive": session(bound(true), same)[id], "pool": session(same, bound(true))[id]} {
			if got.Verdict != results.Inconclusive || !strings.Contains(got.Why, "not offered the same load") || !strings.Contains(got.Why, "generator-bound: 9 of 10") {
				t.Errorf("%s, %s: %s, %s", id, name, got.Verdict, got.Why)
			}
		}
	}
	if got := session(same, bound(false))["B2"]; got.Verdict != results.Holds || !strings.Contains(got.Why, "generator-bound: 9 of 10") {
		t.Errorf("a pool that refused more than was missed: %s, %s", got.Verdict, got.Why)
	}
}

func TestAnotherLoadIsNotJudged(t *testing.T) {
	offered := func(procs int, each float64) func(*results.Run) {
		return func(r *results.Run) { r.Params["gomaxprocs"], r.Params["per_processor"] = procs, each }
	}
	for _, c := range []struct {
		procs int
		each  float64
		want  results.Verdict
		why   string
	}{
		{2, 100_000, results.Holds, ""},
		{2, 500_000, results.NeedsHardware, "10 processors, and GOMAXPROCS is 2"},
		{10, 500_000, results.Holds, ""},
		{2, 10_000, results.Inconclusive, "was offered 10000 jobs a second for each processor"},
	} {
		got := session(offered(c.procs, c.each), offered(c.procs, c.each))["B2"]
		if got.Verdict != c.want || !strings.Contains(got.Why, c.why) {
			t.Errorf("%+v: %s, %s", c, got.Verdict, got.Why)
		}
	}
}

func TestAShortBurstDecidesNothingAboutAnother(t *testing.T) {
	short := func(r *results.Run) { r.Params["burst_seconds"] = 2.0 }
	for id, c := range session(same, short) {
		if id == "B7" || strings.HasPrefix(id, "B/") {
			continue // were not run
		}
		for _, a := range c.Answers {
			if a.Setup == Published && (a.Verdict != results.Inconclusive || !strings.Contains(a.Why, "published-shape was offered 2 s") || a.Repeats != 9) {
				t.Errorf("%s/%s %s in %d repeats: %s", id, a.Part, a.Verdict, a.Repeats, a.Why)
			}
		}
	}
}
