package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
	"github.com/spillway-go/spillway/load/usage"
)

// fake is a session like one of a two-core machine: two set-ups, three loads, four
// contestants, repeats and twins. It is the same on every call.
func fake(repeats int) (results.Results, []results.Run) {
	r := rand.New(rand.NewPCG(7, 7))
	start := time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)
	var runs []results.Run
	for rep := range repeats {
		for _, setup := range []string{"published", "real"} {
			for _, load := range []fakeLoad{{"low", 100, 1000}, {"high", 1000, 10000}, {"sustained", 500, 20000}} {
				for _, pattern := range []string{"naive", "workerpool", "optimized", "limiter"} {
					run := fakeRun(r, setup, load, pattern)
					run.Repeat, run.Order, run.Started = rep, len(runs), start.Add(time.Duration(len(runs))*3*time.Second)
					runs = append(runs, run)
				}
			}
			brisk := fakeLoad{"above 1,000/s", 100, 1000}
			for _, pattern := range []string{"workerpool", "optimized"} {
				run := fakeRun(r, setup, brisk, pattern)
				run.Repeat, run.Order = rep, len(runs)
				runs = append(runs, run)
			}
			if setup == "published" {
				runs = append(runs, results.Run{Setup: setup, Load: "parked", Pattern: "naive", Repeat: rep, Order: len(runs), Elapsed: 1,
					Process: results.Process{Usage: usage.Usage{PeakGoroutines: 10_004, PeakRSS: 42 << 20}, ReuseRate: -1}})
			}
			twin := fakeRun(r, setup, fakeLoad{"high", 1000, 10000}, "workerpool")
			twin.Twin, twin.Repeat, twin.Order = true, rep, len(runs)
			runs = append(runs, twin)
		}
	}
	runs[3].Disturbed = .23
	return fakeResults(start), runs
}

type fakeLoad struct {
	name              string
	clients, requests int
}

func fakeRun(r *rand.Rand, setup string, load fakeLoad, pattern string) results.Run {
	wobble := func(v, share float64) float64 { return v * (1 + share*(r.Float64()*2-1)) }
	real := setup == "real"
	refused := 0.0
	if share, ok := map[string]float64{"high": .882, "sustained": .843}[load.name]; ok && pattern != "naive" {
		refused = wobble(share, .01)
	}
	good := wobble(252, .03)
	if pattern == "naive" {
		good = wobble(map[string]float64{"low": 1130, "high": 10300, "sustained": 5900}[load.name], .04)
		if real {
			good = wobble(map[string]float64{"low": 1090, "high": 5200, "sustained": 4600}[load.name], .06)
		}
	}
	served := float64(load.requests) * (1 - refused)
	run := results.Run{
		Setup: setup, Load: load.name, Pattern: pattern, Offered: uint64(load.requests),
		Elapsed: served * .95 / good,
		Params:  map[string]any{"clients": load.clients, "requests": load.requests},
	}
	counts := map[string]uint64{"ok": uint64(served * .95), "error": uint64(served * .05), "rejected": uint64(float64(load.requests) * refused)}
	if real && pattern == "naive" && load.name == "high" {
		counts["timeout"] = 90
	}
	for _, kind := range []string{"ok", "rejected", "error", "timeout"} {
		h := &histogram.Histogram{}
		for range counts[kind] {
			h.Record(int64(fakeLatency(r, setup, load, pattern, kind)))
		}
		run.Outcomes = append(run.Outcomes, results.Outcome{Kind: kind, Count: counts[kind], Latency: h})
	}
	p := &run.Process
	p.PeakGoroutines, p.ReuseRate = 24, -1
	allocs := wobble(14, .05)
	if pattern == "naive" {
		p.PeakGoroutines = load.clients + int(wobble(5, .5))
	}
	if real {
		allocs += 96
		p.PeakGoroutines += 2*load.clients + 9
	}
	if pattern == "optimized" {
		allocs -= 2
		p.ReuseRate = wobble(.991, .004)
	}
	p.Mallocs = uint64(allocs * float64(load.requests))
	p.AllocBytes = uint64(allocs * wobble(86, .04) * float64(load.requests))
	p.PeakRSS = uint64(wobble(18<<20, .03) + float64(p.PeakGoroutines)*9000)
	p.CPUSeconds = run.Elapsed * .7
	p.GCShare = wobble(.012, .3) + allocs*.0004
	return run
}

func fakeLatency(r *rand.Rand, setup string, load fakeLoad, pattern, kind string) float64 {
	const ms = 1e6
	store := (50 + 50*r.Float64()) * ms
	tail := r.ExpFloat64() * .3 * ms
	if setup == "real" {
		tail = r.ExpFloat64()*2*ms + float64(load.clients)*.02*ms*r.Float64()
	}
	switch {
	case kind == "timeout":
		return 2000*ms + tail
	case kind == "rejected" && setup == "published":
		return 100*ms + r.ExpFloat64()*.8*ms
	case kind == "rejected":
		return .12*ms + r.ExpFloat64()*r.ExpFloat64()*1.6*ms
	case pattern == "naive":
		return store + tail
	case load.name == "low" || load.name == "above 1,000/s":
		return store + (250+60*r.Float64())*ms + tail
	}
	return store + (340+90*r.Float64())*ms + tail
}

func fakeResults(start time.Time) results.Results {
	const source = "Stella-Achar-Oiro, github.com/Stella-Achar-Oiro/healthcare-api-benchmark and its article"
	const high = "11,104 / 2,124 / 2,248 req/s for naive / workerpool / optimized; errors 5.2 / 88.3 / 88.8 %, refusals included"
	none := math.NaN()
	answer := func(setup string, v results.Verdict, m, low, up float64, unit string, rule judge.Rule, why string) results.Answer {
		a := results.Answer{Setup: setup, Verdict: v, Measured: m, Low: low, High: up, Unit: unit, Rule: rule, Why: why, Repeats: 5}
		if low <= up {
			a.Values = []float64{m, low, (low + m) / 2, up, (m + up) / 2}
		}
		return a
	}
	of := func(part, title string, published []float64, all ...results.Answer) []results.Answer {
		for i := range all {
			all[i].Part, all[i].Title, all[i].Published = part, title, published
		}
		return all
	}
	beside := func(a results.Answer) results.Answer { a.Beside = true; return a }
	noisy := func(a results.Answer, floor float64, edge bool, more int) results.Answer {
		a.Floor, a.AtEdge, a.MoreRuns = floor, edge, more
		return a
	}
	behind := func(a results.Answer, sides ...results.Side) results.Answer { a.Sides = sides; return a }
	side := func(setup, load, pattern, figure string, m float64) results.Side {
		return results.Side{Setup: setup, Load: load, Pattern: pattern, Figure: figure, Median: m}
	}
	refused, goodput, reuse := judge.Between(85, 92), judge.Within(.1, 2124), judge.Between(45, 57)
	const ratioTitle, refusedTitle, goodputTitle = "at low load naive beats the small pool 4–5x in throughput", "at high load the pool refuses 88 %", "at high load the pool answers 2,124 req/s"
	const cleared, p99 = "pooled objects must be cleared or one patient's data reaches another's response", "pooled responses cut p99 above 1,000 req/s"
	return results.Results{
		Schema: results.Schema, Experiment: "H", Started: start, Ended: start.Add(4*time.Minute + 12*time.Second), Revision: "0123456789ab", Repeats: 5, Looks: 1,
		Machine: results.Machine{OS: "linux", Arch: "amd64", CPU: "Example Processor 3.1 GHz", CPUs: 2, GOMAXPROCS: 2, MemoryMiB: 7942, Go: "go1.26.0"},
		Command: []string{"spillway", "lab", "H", "--out", "spillway-results/my first run"}, Seed: 42,
		Settings: "sustained 20000, contestant all, loads low high",
		Scaled:   "sustained 20000 instead of 50000",
		Claims: []results.Claim{
			{ID: "H1", Title: ratioTitle, Verdict: results.Holds, Source: source, Published: "1,115 vs 260 (optimized: 261) req/s; mean 75.9 vs 364.9 ms", Why: "naive/pool throughput at low load was 4.41x.",
				Answers: of("", ratioTitle, []float64{4.29}, behind(noisy(answer("as published", results.Holds, 4.41, 4.32, 4.52, "x", judge.Between(4, 5),
					"naive/pool throughput at low load was 4.41x (4.32–4.52, median of 5 repeats), which is inside 4–5x."), .03, false, 0),
					side("published", "low", "naive", "goodput", 1130), side("published", "low", "workerpool", "goodput", 256)),
					beside(noisy(answer("for real", results.Inconclusive, 4.05, 3.91, 4.2, "x", judge.Between(4, 5),
						"naive/pool throughput at low load was 4.05x (3.91–4.20, median of 5 repeats), at the edge of 4–5x: sessions differ by 3 %; 6 more runs should settle it."), .03, true, 6)))},
			{ID: "H2", Title: "at high load the pool answers 2,124 req/s and refuses 88 %", Verdict: results.Fails, Source: source, Published: high, Why: "goodput.",
				Answers: slices.Concat(of("refused", refusedTitle, []float64{88.3}, answer("as published", results.Holds, 88.2, 87.9, 88.6, "%", refused, "the pool's share of refused requests was 88.2 %, inside 85–92 %."),
					answer("for real", results.Fails, 97.1, 96.8, 97.5, "%", refused, "the pool's share of refused requests was 97.1 %, not inside 85–92 %.")),
					of("goodput", goodputTitle, []float64{2124}, answer("as published", results.Fails, 251, 247, 256, "req/s", goodput, "the pool's goodput was 251 req/s, not inside 1,911.6–2,336.4 req/s."),
						answer("for real", results.Inconclusive, 248, none, none, "req/s", goodput, "the pool's goodput has 2 of the 5 repeats that a verdict needs; it needs 3 more.")))},
			{ID: "H4", Title: "pooled response objects are reused 51 % of the time; 80–90 % when warm", Verdict: results.Fails, Published: "51 %", Why: "reuse.",
				Answers: of("", "", []float64{51}, answer("as published", results.Fails, 4.9, 4.6, 5.3, "%", reuse, "true reuse of response objects was 4.90 %, not inside 45–57 %."))},
			{ID: "H7", Title: "a slow query fills the memory", Verdict: results.Inconclusive, Why: "it is missing.",
				Answers: of("", "", nil, results.Answer{Setup: "for real", Verdict: results.Inconclusive, Measured: none, Low: none, High: none, Missing: true, Rule: judge.Above(1), Unit: "x", Why: "the growth is missing in 5 of 5 repeats: The peak goroutines of naive is missing."})},
			{ID: "H9", Title: cleared, Verdict: results.Holds, Any: true, Published: "a rule, no figure", Why: "it was 0.",
				Answers: of("cleared", "cleared and correctly owned reuse never shows foreign data", nil, answer("for real", results.Holds, 0, 0, 0, "", judge.Exactly(0), "responses with another patient's data were 0 at worst."))},
			{ID: "H10", Title: "pooled responses cut GC or p99 above 1,000 req/s", Verdict: results.Inconclusive, Published: "no figure of GC; p99 566 vs 569 ms at high load", Why: "p99.",
				Answers: of("p99", p99, []float64{.995}, noisy(answer("for real", results.Inconclusive, .985, .955, 1.016, "x", judge.Below(1), "optimized/workerpool p99 was 0.985x, at the edge of 1x; more runs would not help."), .021, true, 0))},
			{ID: "H12", Title: "the two differ", Verdict: results.Holds, Why: "they do.", Answers: of("", "", nil, noisy(answer("for real", results.Holds, 1.3, 1.25, 1.36, "x", judge.Outside(.9, 1.1), "their ratio was 1.3x, outside 0.9–1.1x."), .02, false, 0))},
			{ID: "H99", Title: "a claim that this machine cannot decide", Verdict: results.NeedsHardware, Published: "1.26x", Why: "cores.",
				Answers: of("", "", []float64{1.26, 1.35}, answer("for real", results.NeedsHardware, 1.1, .9, 1.3, "x", judge.AtLeast(1.1), "The rule speaks of 16 cores; this machine has 2."))},
			{ID: "aim-1", Title: "our pool is never slower than a channel", Goal: true, Verdict: results.Fails, Why: "it is.",
				Answers: of("", "", nil, noisy(answer("no-op jobs", results.Fails, 1.3, 1.21, 1.38, "x", judge.AtMost(1), "spillway/channel was 1.3x, not at most 1x."), .03, false, 0))},
			{ID: "aim-2", Title: "a goal of an experiment without rows", Goal: true, Verdict: results.Holds, Why: "it does.",
				Answers: []results.Answer{{Title: "a goal of an experiment without rows", Setup: "for real", Verdict: results.Holds, Measured: 5, Low: 4, High: 6, Unit: "s", Rule: judge.AtMost(7), Repeats: 5, Why: "it was 5."}}},
		},
		Demos: []results.Demo{
			{ID: "empty-200", Title: "The handler that returns before its goroutine writes",
				Outcome: "Of 1,000 requests, 1,000 were answered with an empty 200.", Counts: []results.NamedCount{{Name: "requests", N: 1000}, {Name: "empty answers", N: 1000}}},
			{ID: "foreign", Title: "The pooled response that reaches another patient",
				Outcome: "Given back before it was encoded, 9,990 of 10,000 replies were empty and 10 carried another patient.",
				Counts:  []results.NamedCount{{Name: "replies", N: 10000}, {Name: "empty", N: 9990}, {Name: "another patient", N: 10}}},
			{ID: "retry-after", Title: "Retry-After set after the body",
				Outcome: "The header was set 500 times and arrived 0 times.", Counts: []results.NamedCount{{Name: "set", N: 500}, {Name: "arrived", N: 0}}},
		},
	}
}

// fakeFamily is what the declaration of the fake session's experiment says.
var fakeFamily = ledger.Family{
	ID: "H", Title: "A patient API under three concurrency patterns", Claims: []ledger.Claim{{ID: "H1", Note: "A refusal counts as throughput there."}, {ID: "H2"}},
	Sources: []ledger.Source{{Name: "Stella-Achar-Oiro/healthcare-api-benchmark", URL: "https://github.com/Stella-Achar-Oiro/healthcare-api-benchmark", What: "and the article that goes with it"}},
	Method:  []ledger.Note{{Title: "Refusals are not throughput", Text: "Here four outcomes are kept apart everywhere."}},
}

// sweep is a fake session in which a service with a capacity of 250 a second is offered
// half of it to ten times as much, in an open loop, with a time line.
func sweep(repeats int) (results.Results, []results.Run) {
	r := rand.New(rand.NewPCG(8, 8))
	var runs []results.Run
	for rep := range repeats {
		for _, x := range []float64{.5, .9, 2, 5, 10} {
			for _, pattern := range []string{"none", "semaphore", "semaphore-4x", "spillway"} {
				runs = append(runs, sweepRun(r, x, pattern, rep))
			}
		}
	}
	return results.Results{Experiment: "overload", Seed: 8, Repeats: repeats, Machine: results.Machine{OS: "linux", Arch: "amd64", CPUs: 2, GOMAXPROCS: 2, Go: "go1.26.0"}}, runs
}

func sweepRun(r *rand.Rand, x float64, pattern string, repeat int) results.Run {
	const capacity, seconds = 250, 5
	worth := map[string]float64{"none": 1 / (x * x), "semaphore": 1 / x, "semaphore-4x": 1 / (x * x * x), "spillway": 1}[pattern]
	good := capacity * min(x, 1) * min(worth, 1) * (.95 + .05*r.Float64())
	run := results.Run{Setup: "patient API", Load: strconv.FormatFloat(x, 'g', -1, 64) + "x", Pattern: pattern, Repeat: repeat, Elapsed: seconds,
		Offered: uint64(capacity * x * seconds), Params: map[string]any{"load": x}, Lag: &histogram.Histogram{}}
	run.Extra = map[string]float64{"capacity": capacity, "critical_offered": capacity * x / 5, "critical_ok": min(capacity*x/5, good)}
	counts := map[string]uint64{"ok": uint64(good * seconds)}
	counts[map[bool]string{true: "rejected", false: "timeout"}[pattern == "spillway"]] = run.Offered - counts["ok"]
	for _, kind := range []string{"ok", "rejected", "timeout"} {
		h := &histogram.Histogram{}
		for range counts[kind] {
			h.Record(int64((30 + 20*x*r.ExpFloat64()) * 1e6))
			run.Lag.Record(int64(r.ExpFloat64() * 1e5))
		}
		run.Outcomes = append(run.Outcomes, results.Outcome{Kind: kind, Count: counts[kind], Latency: h})
	}
	for i := range 50 {
		p := results.Point{At: float64(i) / 10, OK: uint64(good / 10), InFlight: 8 + r.IntN(4), Queued: r.IntN(5)}
		if pattern == "spillway" {
			p.Limit = 9 + r.IntN(4)
		}
		p.Took = map[int64]uint64{30_000: p.OK / 4, 50_000: p.OK / 2, int64(70_000 * (1 + i/20)): p.OK - p.OK/4 - p.OK/2}
		run.Series = append(run.Series, p)
	}
	run.Process = results.Process{Usage: usage.Usage{PeakGoroutines: 40, PeakRSS: 30 << 20, CPUSeconds: 2, AllocBytes: 1 << 26, Mallocs: 1e5, GCShare: .01}, ReuseRate: -1}
	return run
}

// damaged is a fake session with everything that can go wrong in it: it was
// interrupted, a contestant was killed, a run has no measurement, and the
// texts are hostile.
func damaged() (results.Results, []results.Run) {
	res, runs := fake(3)
	res.Partial = "interrupted by Ctrl-C after 71 of 120 runs"
	for i := range runs {
		switch r := &runs[i]; {
		case r.Setup == "real" && r.Load == "sustained" && r.Pattern == "naive":
			r.Killed = "memory cap of 256 MiB"
		case r.Setup == "real" && r.Load == "low" && r.Pattern == "limiter" && r.Repeat == 1:
			*r = results.Run{Setup: r.Setup, Load: r.Load, Pattern: r.Pattern, Repeat: r.Repeat, Failed: "port in use"}
		}
	}
	res.Claims[0].Answers[0].Why = `<script>alert("why")</script> & "quotes"`
	res.Demos[0].Title = `</style></svg><img src=x onerror=alert(1)>` + "\x1b[31m"
	runs[0].Pattern = `"><script>alert('pattern')</script>`
	return res, runs
}
