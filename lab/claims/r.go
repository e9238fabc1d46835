package claims

import (
	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

const (
	sourceR      = `a benchmark report, "sync.Pool Performance Analysis for Route Package"`
	sourceRoutes = "Spillway's own promise"
	ownGoal      = "a goal of this project, no published figure"
)

// R is typed routes over gin whose request context is allocated for each request or
// taken from a sync.Pool, in five scenarios. Gains and losses are in per cent
// of the fresh build's time; those of the parallel scenario are of time on the
// clock, all others of processor time.
//
// Claims of the family that end in a word are promises of this project about
// package route.
var R = Family{
	ID:     "R",
	Title:  "Typed routes, and what a pooled request context is worth",
	Source: sourceR,
	Claims: []Claim{
		R1, R2, R3, R4, R5, R6, R7Allocs, R7Pause,
		RouteCreate, RouteCreateAllocs, RouteGet, RouteGetAllocs, RouteTax, RouteTaxAllocs, RouteForm, RouteFormAllocs,
	},
}

// ManyCores is the least number of cores for judging a claim about contention.
const ManyCores = 16

func gain(id, title, published, holdsIf string, rule judge.Rule, note string) Claim {
	return Claim{
		ID: id, Title: title, Published: published, HoldsIf: holdsIf,
		Question: judge.Question{Subject: "what pooling saves", Unit: "%", Figure: judge.Mean, Rule: rule},
		Source:   sourceR, Note: note,
	}
}

func loss(id, title, published, holdsIf string, rule judge.Rule, note string) Claim {
	c := gain(id, title, published, holdsIf, rule, note)
	c.Question.Subject = "what pooling costs"
	return c
}

// The published claims. R1 to R5 take each repeat's gain, or loss.
var (
	R1 = gain("R1", "JSON POST: pooled is 6.4 % faster", "20,782 vs 22,206 ns/op; 52 vs 53 allocs", "gain 4–9 %", judge.Between(4, 9),
		"Half of the published time and 21 of its allocations are the harness, which makes a request and a recorder for every iteration. Five runs for each build, without an interval.")
	R2 = loss("R2", "form: pooled is 5.4 % slower", "28,867 vs 27,392 ns/op; 97 vs 95 allocs", "loss 3–8 %", judge.Between(3, 8),
		"The published request type appears to have no form tags. Then nothing is bound, what is required is missing, and the row measures a 400: judged here with tags that work, and as published.")
	R3 = gain("R3", "JSON with a field of 500 characters: pooled is 13.1 % faster", "24,970 vs 28,751 ns/op; 53 vs 54 allocs", "gain 8–18 %", judge.Between(8, 18),
		"The mean of the published fresh runs is 28,551 by their own raw data, and one outlier of 33,784 drives it; by medians the gain is 8 %.")
	R4 = loss("R4", "parallel JSON: pooled is slower, by contention", "7,840 vs 5,798 ns/op: 26 % by the source's base, 35 % by the usual one", "loss of at least 10 %, by 16 cores or more", judge.AtLeast(10),
		"The source divides by the pooled time; here, as everywhere, the fresh time is the base.")
	R5 = gain("R5", "GET: pooled is 9.9 % faster", "15,536 vs 17,237 ns/op; 36 vs 37 allocs", "gain 6–14 %", judge.Between(6, 14), "")

	// R6 takes each repeat's fresh/pooled over the mixture.
	R6 = Claim{
		ID: "R6", Title: "over typical traffic pooled is 5.5 % faster", Published: "1.055x", HoldsIf: "fresh/pooled is 1.03–1.08x",
		Question: judge.Question{Subject: "fresh/pooled over the traffic", Unit: "x", Figure: judge.Mean, Rule: judge.Between(1.03, 1.08)},
		Source:   sourceR,
		Note:     "The traffic: 60 % JSON, 20 % GET, 10 % form, 5 % large, 5 % parallel. The published rows give 1.056 as the ratio of the mean times and 1.052 as the mean of the ratios; 1.055 is neither.",
	}

	// R7Allocs takes pairs of whole allocations: A fresh, B pooled.
	R7Allocs = Claim{
		ID: "R7/allocs", Title: "pooling saves exactly one allocation a request", Published: "−1 everywhere; its own form row says +2", HoldsIf: "fresh − pooled is 1",
		Question: judge.Question{Subject: "fresh − pooled, allocations of a request,", Figure: judge.Difference, Rule: judge.Between(1, 1)},
		Source:   sourceR,
		Note:     "Counted by the runtime over all requests and rounded for one of them, as package testing does: a collection empties the pool, so that a few requests allocate all the same.",
	}
	// R7Pause takes pairs of 99th percentiles of pauses: A pooled, B fresh.
	R7Pause = Claim{
		ID: "R7/pause", Title: "pooling makes the collector's pauses shorter", Published: "no figure", HoldsIf: "p99 of the pauses is lower by more than the noise floor",
		Question: judge.Question{Subject: "p99 of the collector's pauses, pooled/fresh,", Unit: "x", Figure: judge.Ratio, Rule: judge.LowerThanNoise()},
		Source:   sourceR,
		Note:     "Pauses as the runtime counts them, all of one collection together, of the collection after each block; blocks are equally long.",
	}
)

// R7 is the claim as a whole.
func R7(parts ...results.OldClaim) results.OldClaim {
	whole := results.OldClaim{
		ID: "R7", Setup: "every scenario", Title: "pooling saves exactly one allocation a request everywhere and lowers the collector's pauses",
		Published: "−1 alloc (its own form row: +2)", Rule: "−1 in every scenario and a shorter p99 pause", Source: sourceR,
	}
	var verdicts []results.Verdict
	for _, p := range parts {
		verdicts = append(verdicts, p.Verdict)
		whole.Why += p.ID + ", " + p.Setup + ": " + string(p.Verdict) + ". "
		whole.Runs = max(whole.Runs, p.Runs)
		whole.MoreRuns = max(whole.MoreRuns, p.MoreRuns)
	}
	if whole.Verdict = judge.All(verdicts...); whole.Verdict != results.Inconclusive {
		whole.MoreRuns = 0
	}
	return whole
}

// routeRatio is a claim that ours/theirs stays at or below a bound. It takes
// pairs of processor time for a request, net of the harness: A ours, B theirs.
func routeRatio(id, title, subject, holdsIf string, bound float64) Claim {
	return Claim{
		ID: "R/" + id, Title: title, Published: ownGoal, HoldsIf: holdsIf,
		Question: judge.Question{Subject: subject, Unit: "x", Figure: judge.Ratio, Rule: judge.AtMost(bound)}, Source: sourceRoutes,
	}
}

// routePeak is a claim about allocations that no repeat may exceed.
func routePeak(id, title, subject, holdsIf string, bound float64) Claim {
	return Claim{
		ID: "R/" + id, Title: title, Published: ownGoal, HoldsIf: holdsIf,
		Question: judge.Question{Subject: subject, Figure: judge.Peak, Rule: judge.AtMost(bound)}, Source: sourceRoutes,
	}
}

// What this project promises of its typed routes. All are judged in a build with
// version 2 of encoding/json.
var (
	RouteCreate = routeRatio("create", "JSON POST with full validation takes at most 0.60 of mux, json v2 and validator",
		"our time/mux, json v2 and validator", "time/theirs is at most 0.6", .6)
	RouteCreateAllocs = routePeak("create-allocs", "with at most 6 allocations", "allocations of a JSON POST", "there are at most 6", 6)
	RouteGet          = routeRatio("get", "a typed GET takes at most 1.05 of the best hand-written handler",
		"our time/the best hand-written handler's", "time/theirs is at most 1.05", 1.05)
	RouteGetAllocs = routePeak("get-allocs", "with at most 2 allocations", "allocations of a GET", "there are at most 2", 2)
	// RouteTax takes pairs of a typed route and the same by hand on the same router.
	RouteTax = routeRatio("tax", "a typed route takes at most 5 % more than the same by hand",
		"time typed/by hand", "time typed/by hand is at most 1.05", 1.05)
	// RouteTaxAllocs takes allocations beyond those by hand.
	RouteTaxAllocs = routePeak("tax-allocs", "and no further allocation", "allocations beyond those by hand", "there is none in any repeat", 0)
	RouteForm      = routeRatio("form", "a form takes at most 0.55 of mux and validator",
		"our time/mux and validator", "time/theirs is at most 0.55", .55)
	RouteFormAllocs = routePeak("form-allocs", "with at most 10 allocations", "allocations of a form POST", "there are at most 10", 10)
)
