package report

import (
	"math/rand/v2"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/results"
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
					Process: results.Process{PeakGoroutines: 10_004, PeakRSS: 42 << 20, ReuseRate: -1}})
			}
			twin := fakeRun(r, setup, fakeLoad{"high", 1000, 10000}, "workerpool")
			twin.Twin, twin.Repeat, twin.Order = true, rep, len(runs)
			runs = append(runs, twin)
		}
	}
	return fakeResults(start, len(runs)), runs
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
	p.PeakGoroutines, p.PeakStoreCalls, p.ReuseRate = 24, 20, -1
	allocs := wobble(14, .05)
	if pattern == "naive" {
		p.PeakGoroutines, p.PeakStoreCalls = load.clients+int(wobble(5, .5)), load.clients
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

func fakeResults(start time.Time, runs int) results.Results {
	const source = "Stella-Achar-Oiro, github.com/Stella-Achar-Oiro/healthcare-api-benchmark and its article"
	const high = "11,104 / 2,124 / 2,248 req/s for naive / workerpool / optimized; errors 5.2 / 88.3 / 88.8 %, refusals included"
	claim := func(id, title, setup string, v results.Verdict, m, low, up float64, unit, published, rule, why string) results.OldClaim {
		return results.OldClaim{ID: id, Title: title, Setup: setup, Verdict: v, Measured: m, Low: low, High: up, Unit: unit,
			Published: published, Rule: rule, Why: why, Runs: 4, Source: source}
	}
	noisy := func(c results.OldClaim, floor float64, more int) results.OldClaim {
		c.NoiseFloor, c.MoreRuns = floor, more
		return c
	}
	const ratio, low = "naive/pool throughput is 4–5x", "at low load naive beats the small pool 4–5x in throughput"
	const lowPublished = "1,115 vs 260 (optimized: 261) req/s; mean 75.9 vs 364.9 ms; p99 100 vs 424 ms; errors 5.8 vs 5.3 %"
	const p99Title, p99Rule = "pooled responses cut p99 above 1,000 req/s", "optimized/workerpool p99 is lower by more than the noise floor"
	return results.Results{
		Schema: results.Schema, Experiment: "H", Started: start, Ended: start.Add(4*time.Minute + 12*time.Second),
		Machine: results.Machine{OS: "linux", Arch: "amd64", CPU: "Example Processor 3.1 GHz", CPUs: 2, GOMAXPROCS: 2, MemoryMiB: 7942, Go: "go1.26.0"},
		Command: []string{"spillway", "lab", "H", "--out", "spillway-results/my first run"}, Seed: 42,
		Scaled: "sustained load with 20,000 requests instead of 50,000",
		Claims: []results.OldClaim{
			claim("H1", low, "as published", results.Holds, 4.41, 4.32, 4.52, "x", lowPublished, ratio,
				"naive/pool throughput at low load was 4.41x (4.32–4.52; geometric mean of 4 paired ratios), inside 4–5x."),
			claim("H1", low, "for real", results.Inconclusive, 4.05, 3.91, 4.2, "x", lowPublished, ratio,
				"naive/pool throughput at low load was 4.05x (3.91–4.20; geometric mean of 4 paired ratios), which is partly inside and partly outside 4–5x; 6 more runs should settle it."),
			claim("H2/refused", "at high load the pool refuses 88 %", "as published", results.Holds, 88.2, 87.9, 88.6, "%", high, "85–92 % of the requests are refused",
				"the pool's share of refused requests at high load was 88.2 % (87.9–88.6; mean of 4 runs), inside 85–92 %."),
			claim("H2/refused", "at high load the pool refuses 88 %", "for real", results.Fails, 97.1, 96.8, 97.5, "%", high, "85–92 % of the requests are refused",
				"the pool's share of refused requests at high load was 97.1 % (96.8–97.5; mean of 4 runs), above 85–92 %."),
			claim("H2/goodput", "at high load the pool answers 2,124 req/s", "as published", results.Fails, 251, 247, 256, "req/s", high, "the pool's goodput is within 10 % of 2,124 req/s",
				"the pool's goodput at high load was 251 req/s (247–256; mean of 4 runs), below 1,912–2,336 req/s."),
			claim("H2/goodput", "at high load the pool answers 2,124 req/s", "for real", results.Fails, 248, 241, 254, "req/s", high, "the pool's goodput is within 10 % of 2,124 req/s",
				"the pool's goodput at high load was 248 req/s (241–254; mean of 4 runs), below 1,912–2,336 req/s."),
			claim("H4/published", "pooled response objects are reused 51 % of the time", "as published", results.Fails, 4.9, 4.6, 5.3, "%", "51 %", "true reuse in the published set-up is 45–57 %",
				"true reuse of response objects in the published set-up was 4.90 % (4.60–5.30; mean of 4 runs), below 45–57 %."),
			claim("H9/cleared", "reuse with clearing and a clear owner shows none", "for real", results.Holds, 0, 0, 0, "", "a rule, no figure", "cleared and correctly owned reuse never shows foreign data",
				"the count of responses with another patient's data, when cleared and correctly owned, was 0 (the most in 4 runs), at most 0."),
			noisy(claim("H10/p99", p99Title, "for real", results.Inconclusive, .985, .955, 1.016, "x", "no figure of GC; p99 566 vs 569 ms at high load", p99Rule,
				"optimized/workerpool p99 was 0.985x (0.955–1.02; geometric mean of 4 paired ratios), not clearly beyond the 2.1 % by which the same contestant differs from itself; more runs would not help."), .021, 0),
			noisy(claim("H10", "pooled responses cut GC or p99 above 1,000 req/s", "for real", results.Inconclusive, .985, .955, 1.016, "x", "no figure of GC", p99Rule,
				"p99 inconclusive and GC share inconclusive."), .021, 0),
			claim("H11/stack", "a goroutine costs 2–4 KB", "as published", results.Holds, 2.3, 2.2, 2.4, "KB", "2 KB a goroutine; 1,000 are 2–4 MB", "measured stack per goroutine is 2–4 KB",
				"stack per goroutine was 2.30 KB (2.20–2.40; mean of 4 runs), inside 2–4 KB."),
			claim("H11/connections", "20 workers never hold more than 20 connections", "for real", results.Holds, 20, 20, 20, "", "20 workers, at most 20 connections", "connections in use never exceed the 20 workers",
				"the pool's peak of store connections in use was 20 (the most in 4 runs), at most 20."),
			claim("H99", "a claim that this machine cannot decide", "for real", results.NeedsHardware, 1.1, .9, 1.3, "x", "1.26x", "loss of at least 1.1x at 16 cores or more",
				"The rule speaks of 16 cores; this machine has 2."),
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
	res.Claims[0].Why = `<script>alert("why")</script> & "quotes"`
	res.Demos[0].Title = `</style></svg><img src=x onerror=alert(1)>` + "\x1b[31m"
	runs[0].Pattern = `"><script>alert('pattern')</script>`
	return res, runs
}
