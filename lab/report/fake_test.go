package report

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strconv"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/usage"
)

// fake is a session like one of a two-core machine: two set-ups, three loads, four
// contestants, repeats and twins. It is the same on every call.
func fake(repeats int) (results.Results, []results.Run) {
	r := rand.New(rand.NewPCG(7, 7))
	var runs []results.Run
	add := func(run results.Run, repeat int) {
		run.Repeat, run.Order = repeat, len(runs)
		runs = append(runs, run)
	}
	for rep := range repeats {
		for _, setup := range []string{"published", "real"} {
			for i, load := range []string{"low", "high", "sustained"} {
				clients := []int{100, 1000, 500}[i]
				for _, pattern := range []string{"naive", "workerpool", "optimized", "limiter"} {
					add(fakeRun(r, setup, load, pattern, clients), rep)
				}
			}
			add(results.Run{Setup: setup, Load: "parked", Pattern: "naive", Elapsed: 1,
				Process: results.Process{Usage: usage.Usage{PeakGoroutines: 10_004, PeakRSS: 42 << 20}, ReuseRate: -1}}, rep)
			twin := fakeRun(r, setup, "high", "workerpool", 1000)
			twin.Twin = true
			add(twin, rep)
		}
	}
	runs[3].Disturbed = .23
	return fakeResults(), runs
}

// fakeRun is one of clients that send ten requests each.
func fakeRun(r *rand.Rand, setup, load, pattern string, clients int) results.Run {
	wobble := func(v, share float64) float64 { return v * (1 + share*(r.Float64()*2-1)) }
	n, rate, refused, allocs := 10*clients, 252., 0., 14.
	if setup == "real" {
		allocs = 110
	}
	if pattern == "naive" {
		rate = 10 * float64(clients)
	} else if load != "low" {
		refused = wobble(.88, .01)
	}
	counts := map[string]uint64{"rejected": uint64(refused * float64(n)), "timeout": uint64(n / 200)}
	counts["ok"] = uint64(n) - counts["rejected"] - counts["timeout"]
	run := results.Run{Setup: setup, Load: load, Pattern: pattern, Offered: uint64(n), Elapsed: float64(counts["ok"]) / wobble(rate, .03)}
	for _, kind := range []string{"ok", "rejected", "timeout"} {
		h := &histogram.Histogram{}
		for range counts[kind] {
			h.Record(int64(map[string]float64{"ok": 75e6, "rejected": 100e6, "timeout": 2e9}[kind] * (.8 + r.ExpFloat64()/5)))
		}
		run.Outcomes = append(run.Outcomes, results.Outcome{Kind: kind, Count: counts[kind], Latency: h})
	}
	run.Process = results.Process{ReuseRate: -1, Usage: usage.Usage{PeakGoroutines: clients + 4, PeakRSS: uint64(wobble(18<<20, .03)), CPUSeconds: run.Elapsed * .7, GCShare: wobble(.012, .3),
		Mallocs: uint64(wobble(allocs, .05) * float64(n)), AllocBytes: uint64(wobble(allocs*86, .05) * float64(n))}}
	return run
}

// fakeResults are those of testdata: every verdict, claims of several parts and set-ups, goals, answers
// beside, at the edge, and without a figure.
func fakeResults() (res results.Results) {
	data, err := os.ReadFile("testdata/results.json")
	if err == nil {
		err = json.Unmarshal(data, &res)
	}
	if err != nil {
		panic(err)
	}
	return res
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
	res.Claims[0].Title = `</style></svg><img src=x onerror=alert(1)>` + "\x1b[31m"
	runs[0].Pattern = `"><script>alert('pattern')</script>`
	return res, runs
}
