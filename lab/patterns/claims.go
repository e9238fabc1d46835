package patterns

import (
	"fmt"
	"math"
	"slices"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

// The figures.
var (
	throughput  = ledger.Figure{Name: "throughput, refusals counted", Value: answers}
	reuse       = ledger.Extra("reuse_true", "true reuse")
	reported    = ledger.Extra("reuse_reported", "reported reuse")
	foreign     = ledger.Extra("foreign", "answers with another patient's data")
	stack       = ledger.Extra("stack_kb", "stack of a goroutine")
	connections = ledger.Extra("connections", "most connections held")
	p99         = brisk("p99", ledger.Quantile("ok", 0.99, "").Value)
	cpuEach     = ledger.Figure{Name: "processor time for a request", Value: func(r *results.Run) float64 {
		if r.Process.CPUSeconds <= 0 || r.Offered == 0 {
			return math.NaN()
		}
		return 1e6 * r.Process.CPUSeconds / float64(r.Offered)
	}}
	allocations = brisk("allocations for each request", func(r *results.Run) float64 { return each(r, r.Process.Mallocs) })
	allocated   = brisk("bytes allocated for each request", func(r *results.Run) float64 { return each(r, r.Process.AllocBytes) })
)

// each is a count of what is used for every request; one that is not known is missing.
func each(r *results.Run, n uint64) float64 {
	if n == 0 || r.Offered == 0 {
		return math.NaN()
	}
	return float64(n) / float64(r.Offered)
}

// answers are all that were given, a second: the source counts every answer as throughput.
func answers(r *results.Run) float64 {
	var all uint64
	for _, o := range r.Outcomes {
		all += o.Count
	}
	if all == 0 {
		return math.NaN()
	}
	return float64(all) / r.Elapsed
}

// The latencies of all answers, as the source has them: errors and refusals are among them.
var (
	mean = ofAll("mean latency of all answers", (*histogram.Histogram).Mean)
	tail = ofAll("p99 of all answers", func(h *histogram.Histogram) float64 { return float64(h.Quantile(.99)) })
)

func ofAll(name string, value func(*histogram.Histogram) float64) ledger.Figure {
	return ledger.Figure{Name: name, Value: func(r *results.Run) float64 {
		var all histogram.Histogram
		for _, o := range r.Outcomes {
			all.Merge(o.Latency)
		}
		if all.Count() == 0 {
			return math.NaN()
		}
		return value(&all) / 1e6
	}}
}

// brisk is a figure of runs with more than 1,000 requests a second, of which H10 speaks.
func brisk(name string, value func(*results.Run) float64) ledger.Figure {
	return ledger.Figure{Name: name + " at more than 1,000 requests a second", Value: func(r *results.Run) float64 {
		if float64(r.Offered)/r.Elapsed <= 1000 {
			return math.NaN()
		}
		return value(r)
	}}
}

func of(setup, load, pattern string, f ledger.Figure) ledger.Term {
	return ledger.Of(ledger.Key{Setup: setup, Load: load, Pattern: pattern}, f)
}

// crowding compares the processor time for a request with many in flight and with few.
var crowding = ledger.One(Shape, of(Shape, Many, Naive, cpuEach).Over(of(Shape, Few, Naive, cpuEach)))

// everywhere is a case for each set-up: the published shape decides, ours stands beside.
// The sizes decide what comes out, so at others than the published ones it is open.
func everywhere(load string, value func(e *ledger.Evidence, setup string) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for _, setup := range []string{Shape, Real} {
			if setup == Real && load == Sustained {
				continue
			}
			out = append(out, ledger.Case{Setup: setup, Value: value(e, setup), Beside: setup != Shape, Open: otherSize(e, setup, load)})
		}
		return out
	}
}

func otherSize(e *ledger.Evidence, setup, load string) string {
	k := ledger.Key{Setup: setup, Load: load, Pattern: WorkerPool}
	for name, published := range experiment.Sized[Config]("").job(k, 0).Params() {
		if ran := e.ParamOf(k, name); !math.IsNaN(ran) && ran != published {
			return "It is not judged, because the sizes decide it and these are not the published ones: run it without other sizes."
		}
	}
	return ""
}

// pool is a figure of the pool.
func pool(load string, f ledger.Figure) func(*ledger.Evidence) []ledger.Case {
	return everywhere(load, func(_ *ledger.Evidence, setup string) ledger.Term { return of(setup, load, WorkerPool, f) })
}

// ratio compares naive with the pool.
func ratio(load string) func(*ledger.Evidence) []ledger.Case {
	return everywhere(load, func(_ *ledger.Evidence, setup string) ledger.Term {
		return of(setup, load, Naive, throughput).Over(of(setup, load, WorkerPool, throughput))
	})
}

// slower shows a latency of the pool beside that of naive. Nobody said how near to the published ratio
// is near enough, so the figure decides nothing.
func slower(load, id string, f ledger.Figure, published float64) ledger.Part {
	return ledger.Part{ID: id, Title: fmt.Sprintf("under %s load the pool's %s is %v times that of naive", load, f.Name, published), Subject: fmt.Sprintf("workerpool/naive %s under %s load", f.Name, load),
		Unit: "x", Rule: judge.Within(0.10, published), Published: []float64{published}, Spread: 0.02, Beside: true,
		Cases: everywhere(load, func(_ *ledger.Evidence, setup string) ledger.Term {
			return of(setup, load, WorkerPool, f).Over(of(setup, load, Naive, f))
		})}
}

// pooled compares a pool whose replies are really reused with one that makes them; beside
// it stands the published one, in which they hardly are.
func pooled(compare func(pooled, fresh ledger.Term) ledger.Term, f ledger.Figure) func(*ledger.Evidence) []ledger.Case {
	value := func(pattern string) ledger.Term {
		return compare(of(Shape, Brisk, pattern, f), of(Shape, Brisk, WorkerPool, f))
	}
	return ledger.Only(
		ledger.Case{Setup: Shape + ", every reply reused", Value: value(Warm)},
		ledger.Case{Setup: Shape + ", as published", Value: value(Optimized), Beside: true},
	)
}

// held compares the connections held under any of the loads with the workers. A look-up
// of a simulated store stands for one; only the database for real has connections, so that
// decides too.
func held(e *ledger.Evidence) []ledger.Case {
	most := func(setup, pattern string, loads ...string) ledger.Term {
		var terms []ledger.Term
		for _, load := range loads {
			terms = append(terms, of(setup, load, pattern, connections))
		}
		return ledger.Largest(terms...).Over(ledger.Const(e.ParamOf(ledger.Key{Setup: setup, Load: High, Pattern: pattern}, "workers")))
	}
	return []ledger.Case{
		{Setup: Shape, Value: most(Shape, WorkerPool, Low, High, Sustained), Remark: "A look-up of the simulated store counts as a connection."},
		{Setup: Real, Value: most(Real, WorkerPool, Low, High), Remark: "These were really open to the database."},
		{Setup: Real + ", naive", Value: most(Real, Naive, Low, High), Beside: true},
	}
}

// littlesLaw is the goodput that workers over such a store can have: each worker has one
// look-up in progress, each lasts the store's mean latency.
func littlesLaw(e *ledger.Evidence, k ledger.Key) float64 {
	mean := (e.ParamOf(k, "min_latency_ms") + e.ParamOf(k, "max_latency_ms")) / 2
	return e.ParamOf(k, "workers") * (1 - e.ParamOf(k, "error_rate")) / mean * 1000
}

func refused(load, title string, published float64, rule judge.Rule) ledger.Part {
	return ledger.Part{ID: "refused", Title: title, Subject: "the pool's share of refused requests under " + load + " load", Unit: "%",
		Rule: rule, Published: []float64{published}, Spread: 0.5, Max: 100, Cases: pool(load, ledger.RefusedShare)}
}

// goodput shows what the published throughput is not. Nobody claimed it.
func goodput(load, title string, published float64) ledger.Part {
	return ledger.Part{ID: "goodput", Title: title, Subject: "the pool's goodput under " + load + " load", Unit: "req/s",
		Rule: judge.Within(0.10, published), Published: []float64{published}, Spread: 5, Beside: true, Cases: pool(load, ledger.Goodput)}
}

// reused is a part about reuse in per cent, in the published set-up.
func reused(id, title, subject string, rule judge.Rule, f ledger.Figure, pattern string, published ...float64) ledger.Part {
	cases := []ledger.Case{{Setup: Shape, Value: of(Shape, Sustained, pattern, f).Times(100)}}
	if pattern == Warm { // for real every reply is given back
		cases = append(cases, ledger.Case{Setup: Real, Value: of(Real, High, Optimized, f).Times(100), Beside: true})
	}
	return ledger.Part{ID: id, Title: title, Subject: subject, Unit: "%", Rule: rule, Published: published, Spread: 0.3, Max: 100, Cases: ledger.Only(cases...)}
}

const (
	publishedHigh      = "11,104 / 2,124 / 2,248 req/s for naive / workerpool / optimized; mean 75.5 / 148.5 / 145.0 ms; p99 100 / 569 / 566 ms; errors 5.2 / 88.3 / 88.8 %, refusals included; goroutines about 1,000 / 20 / 20"
	publishedSustained = "6,179 / 1,593 / 1,547 req/s for naive / workerpool / optimized; mean 75.8 / 164.5 / 167.1 ms; errors 4.9 / 84.5 / 84.0 %, refusals included"
)

var family = ledger.Family{
	ID:     "H",
	Title:  "A patient API under three published concurrency patterns, and under ours",
	Source: "Stella-Achar-Oiro, github.com/Stella-Achar-Oiro/healthcare-api-benchmark and its article",
	Claims: slices.Concat([]ledger.Claim{
		{ID: "H1", Title: "at low load naive beats the small pool 4–5x in throughput",
			Published: "1,115 vs 260 (optimized: 261) req/s; mean 75.9 / 364.9 / 363.1 ms; p99 100 / 424 / 418 ms; errors 5.8 / 5.3 / 4.7 %",
			Note:      "100 clients share 20 workers, so the ratio is 100/20 less the tail of each run: it follows from the sizes, not from the cost of goroutines.",
			Parts: []ledger.Part{
				{ID: "throughput", Title: "at low load naive answers 4 to 5 times as much as the small pool", Subject: "naive/workerpool throughput at low load", Unit: "x",
					Rule: judge.Between(4, 5), Published: []float64{4.29}, Spread: 0.02, Cases: ratio(Low)},
				slower(Low, "mean", mean, 4.81), slower(Low, "p99", tail, 4.24),
			}},
		{ID: "H2", Title: "at high load the pool answers 2,124 req/s and refuses 88 %", Published: publishedHigh,
			Note: "The share refused is fixed by the set-up: of 1,000 clients, 120 fit into workers and queue, and the other 880 burn their ten requests on refusals. The published throughput counts refusals as answers; 20 workers over a store of 75 ms with 5 % errors can succeed 253 times a second, whatever the load.",
			Parts: []ledger.Part{
				refused(High, "at high load the pool refuses 88 %", 88.3, judge.Between(85, 92)),
				{ID: "throughput", Title: "at high load the pool answers 2,124 req/s, refusals counted as the source does", Subject: "the pool's throughput at high load", Unit: "req/s",
					Rule: judge.Between(1900, 2350), Published: []float64{2124}, Spread: 20, Cases: pool(High, throughput)},
				{ID: "ratio", Title: "at high load naive answers 5.2 times as much as the pool, in that count", Subject: "naive/workerpool throughput at high load", Unit: "x",
					Rule: judge.Between(4.7, 5.7), Published: []float64{5.23}, Spread: 0.02, Cases: ratio(High)},
				slower(High, "mean", mean, 1.97), slower(High, "p99", tail, 5.69),
				goodput(High, "nobody claimed it: at high load the pool succeeds 2,124 times a second", 2124),
			}},
		{ID: "H-law", Goal: true, Title: "a pool's goodput is workers × (1 − error rate) ÷ mean latency of the store",
			Note: "Little's law explains why the goodput of H2 and H3 comes out as it does.",
			Parts: []ledger.Part{{Subject: "the pool's goodput at high load/Little's law", Unit: "x", Rule: judge.Within(0.10, 1), Spread: 0.02,
				Cases: everywhere(High, func(e *ledger.Evidence, setup string) ledger.Term {
					k := ledger.Key{Setup: setup, Load: High, Pattern: WorkerPool}
					return ledger.Of(k, ledger.Goodput).Over(ledger.Const(littlesLaw(e, k)))
				})}}},
		{ID: "H3", Title: "under sustained load it is the same: the pool refuses most, and naive answers about four times as much", Published: publishedSustained,
			Note: "As in H2, the published throughput counts refusals as answers.",
			Parts: []ledger.Part{
				refused(Sustained, "under sustained load the pool still refuses most", 84.5, judge.Between(80, 90)),
				{ID: "throughput", Title: "under sustained load naive answers about four times as much as the pool, refusals counted as the source does", Subject: "naive/workerpool throughput under sustained load",
					Unit: "x", Rule: judge.Between(3, 5), Published: []float64{3.88}, Spread: 0.03, Cases: ratio(Sustained)},
				slower(Sustained, "mean", mean, 2.17),
				goodput(Sustained, "nobody claimed it: under sustained load the pool succeeds 1,593 times a second", 1593),
			}},
		{ID: "H4", Title: "pooled response objects are reused 51 % of the time, and 80–90 % when warm", Published: "51 %; 80–90 % when warm",
			Note: "The published counter takes every Get for a hit and only the 5 % error path puts an object back, so it shows 1/1.95 = 51 % at a true reuse of about 5 %. Warm is a promise: a receiver that gives every reply back may do better than 90 %.",
			Parts: []ledger.Part{
				reused("reported", "the source's own counter reports that 51 % are reused", "the reuse that the source's counter reports", judge.Between(48, 54), reported, Optimized, 51),
				reused("true", "51 % of the response objects are really reused", "true reuse of response objects", judge.Between(45, 57), reuse, Optimized, 51),
				reused("warm", "a warm pool reuses 80 % or more", "true reuse of response objects in a warm pool", judge.AtLeast(80), reuse, Warm, 80, 90),
			}},
		claimOfSizes,
	}, claimsOfScenarios, []ledger.Claim{
		{ID: "H9", Title: "pooled objects must be cleared, or one patient's data reaches another's response", Published: "a rule, no figure",
			Note: "Clearing alone does not suffice: the published code gives the object back before the receiver has encoded it.",
			Parts: []ledger.Part{
				{ID: "uncleared", Title: "reuse without clearing shows one patient's data to another", Subject: "the count of answers with another patient's data, reused uncleared,", Kind: judge.Every, Rule: judge.AtLeast(1),
					Cases: ledger.One(Shape, of(Shape, Reuse, Uncleared, foreign))},
				{ID: "cleared", Title: "reuse with clearing and a clear owner shows none", Subject: "the count of answers with another patient's data, cleared and correctly owned,", Kind: judge.Never, Rule: judge.Exactly(0),
					Cases: ledger.One(Shape, of(Shape, Reuse, Warm, foreign))},
			}},
		{ID: "H10", Title: "pooled responses cut allocations, garbage collection and p99 above 1,000 req/s", Published: "no figure of allocations or of the collector; p99 418 vs 424 ms at low load and 566 vs 569 ms at high load",
			Note: "It is measured over a store of 0–1 ms, where the pool answers many thousand requests a second and admits them all. A response has the published five fields, 72 bytes in a place of 80, is encoded as a handler does, and is given back after that. The bytes decide for the collector, which works as often as they fill the heap. The published optimized, which reuses 5 %, stands beside.",
			Parts: []ledger.Part{
				{ID: "allocations", Title: "pooled responses take fewer allocations for each request", Subject: "pooled − fresh allocations for each request", Rule: judge.Below(0), Spread: 0.05, Cases: pooled(ledger.Term.Minus, allocations)},
				{ID: "bytes", Title: "pooled responses cut the bytes that are allocated by 10 % or more", Subject: "pooled/fresh bytes for each request", Unit: "x", Rule: judge.AtMost(0.9), Spread: 0.005, Cases: pooled(ledger.Term.Over, allocated)},
				{ID: "p99", Title: "pooled responses lower p99, beyond the noise", Subject: "pooled/fresh p99", Unit: "x", Rule: judge.Below(1), Published: []float64{0.995}, Spread: 0.01, Cases: pooled(ledger.Term.Over, p99)},
			}},
		{ID: "H11", Title: "a pool's memory is calculable: 2–4 KB a goroutine, and 20 workers never hold more than 20 connections", Published: "2 KB a goroutine; 1,000 are 2–4 MB; 20 workers, at most 20 connections",
			Note: "The published look-up decides. 2 KB is where a stack starts, which goroutines keep that only wait; a handler that goes through HTTP and a database driver grows it, and a request also keeps its connection's goroutine. Both stand beside.",
			Parts: []ledger.Part{
				{ID: "stack", Title: "a goroutine costs 2–4 KB", Subject: "stack of a goroutine", Unit: "KB", Rule: judge.Between(1.9, 4.2), Published: []float64{2, 4}, Spread: 0.05,
					Cases: ledger.Only(ledger.Case{Setup: "the published look-up", Value: of(Shape, Looking, Naive, stack)}, ledger.Case{Setup: "goroutines that only wait", Value: of(Shape, Parked, Naive, stack), Beside: true}, ledger.Case{Setup: Real, Value: of(Real, High, Naive, stack), Beside: true})},
				{ID: "connections", Title: "a pool never holds more connections than it has workers", Subject: "the most connections held/workers", Unit: "x", Kind: judge.Every, Rule: judge.AtMost(1), Published: []float64{1}, Cases: held},
			}},
		claimOfShutdown, claimOfMemory, claimOfLongLived,
		{ID: "H15", Title: "excess requests are rejected immediately", Published: "\"rejected immediately\"; no figure",
			Note:  "The published load test waits 100 ms for room in the queue before it refuses, and decides. The printed HTTP handler, which refuses at once, stands beside, with the time that HTTP takes.",
			Parts: []ledger.Part{{Subject: "p99 of a refusal by the pool at high load", Unit: "ms", Rule: judge.AtMost(5), Spread: 0.5, Cases: pool(High, ledger.Quantile("rejected", 0.99, ""))}}},
		{ID: "H16", Title: "the scheduler struggles with thousands of goroutines", Published: "no figure; elsewhere in the same source it \"handles thousands efficiently\"",
			Note: "The same look-ups over a store of 0 to 1 ms, by 1,000 clients and by 20, a goroutine for each look-up. Half as much again for each would be a struggle; at most a tenth more is what efficiently says. Between them is neither.",
			Parts: []ledger.Part{
				{ID: "struggles", Title: "with a thousand in flight a request takes 1.5 times the processor time, or more", Subject: "processor time for a request with 1,000 in flight/with 20", Unit: "x", Rule: judge.AtLeast(1.5), Spread: 0.03, Cases: crowding},
				{ID: "efficiently", Title: "the same source says the contrary: it takes at most a tenth more", Subject: "processor time for a request with 1,000 in flight/with 20", Unit: "x", Rule: judge.AtMost(1.1), Spread: 0.03, Beside: true, Cases: crowding},
			}},
	}),
	Axes: axes(),
	Columns: []ledger.Column{
		{Key: "stack_kb", Name: "stack of a goroutine, KB", Format: "decimals"},
		{Key: withoutConnection.Key, Name: "no connection within 10 s"}, {Key: stalledGoroutines.Key, Name: stalledGoroutines.Name},
		{Key: neighbourGood.Key, Name: "the neighbour's good/s"}, {Key: "beside_good", Name: "its own good/s"},
		{Key: refusedConnections.Key, Name: "refused by PostgreSQL"}, {Key: fairGood.Key, Name: "good/s without it"}, {Key: ownGood.Key, Name: "good/s"},
		{Key: acceptedRequests.Key, Name: acceptedRequests.Name}, {Key: lostRequests.Key, Name: lostRequests.Name}, {Key: shortAnswered.Key, Name: shortAnswered.Name},
		{Key: stalledMemory.Key, Name: "growth of resident memory, MiB"}, {Key: filledMemory.Key, Name: filledMemory.Name, Format: "size"},
		{Key: criticalShare.Key, Name: "critical answered, %", Format: "decimals"},
	},
	Sources: []ledger.Source{{Name: "Stella-Achar-Oiro/healthcare-api-benchmark", URL: "https://github.com/Stella-Achar-Oiro/healthcare-api-benchmark", What: "and the article that goes with it"}},
	Method: []ledger.Note{
		{Title: "H6 to H8 on real databases", Text: "The scenarios are stories without figures, and are played over HTTP by the service's own API in a process of its own. On PostgreSQL, with --postgres, it has a database of its own whose role may have 100 connections. A query takes a row and, in the server, 50 to 100 ms: as long as the published store, and a connection all the time. unprotected has a goroutine for every request and a pool of connections without a bound; queueing, it has a pool of 95; pooled has 20 workers and as many connections, and refuses when 100 wait; told is that with 95; adaptive is the service as it is unless told otherwise, with 95 connections. Callers of the adaptive service say that they wait 2 s, and what is answered later counts for none of them as answered. The lock of H7 is a real one, LOCK TABLE by another session, as of a migration. In H8 both services close a connection after two seconds and open another, as services do after minutes. What the server computes does not count as a disturbance. SQLite, which every session has, is without a server that could refuse a connection, so it is asked about H8 alone: both services have the same file open, take 50 to 100 ms for a look-up as well, and compete for the processors. What stalls for H7 is a server in the published shape to which 10,000 connections have sent a request each."},
		{Title: "Refusals are not throughput", Text: "The published harness counts every answer, and a refusal is an answer. A refusal is also counted as an error, and its latency goes into the same figures as a served request. Here four outcomes are kept apart everywhere, and goodput (requests that got their patient) is the headline."},
		{Title: "What the slots can do", Text: "By Little's law a pool cannot answer more than workers × (1 − error rate) ÷ mean store latency. Twenty workers, 5 % errors and a store of 50–100 ms make 20 × 0.95 ÷ 0.075 s ≈ 253 good requests a second, whatever the load. A pool that shows 2,000 a second at high load is refusing the rest."},
		{Title: "The share refused is set by the set-up", Text: "In a closed loop each client sends its quota back to back. Clients that are refused come back at once and burn their quota early; the few that hold slots do the rest. With 1,000 clients and 120 places (20 workers, a queue of 100) about 880 clients burn out: 88 %. Another quota or another number of clients gives another share."},
		{Title: "A closed loop hides waiting", Text: "When the service stalls, a client that waits does not send. The requests that would have arrived in the meantime are missing from the figures. The loads of this experiment are closed loops all the same, as published, so that the figures can be compared; read the latencies with that in mind."},
		{Title: "The published shape, and ours", Text: "The published load test calls a function that waits 100 ms for queue room; the printed HTTP handler is different code and refuses at once. “Published shape” is the former, rebuilt, and decides the claims. “For real” are our patterns, in a server of their own with HTTP and a database, under the short loads. These stand beside it."},
		{Title: "Side by side", Text: "Pools spend their time waiting for the store. They run at the same time, each in a process of its own, at the full published size; what they differ from a twin is the noise floor. Naive does all of its work within a second under the short loads, and then runs alone."},
		{Title: "What the hit counter counts", Text: "The published reuse rate counts every Get as a hit and is diluted by the error path, the only one that gives an object back. A pool that never reuses anything would report about 51 %. Here reuse is counted where it happens: a Get that was answered by an earlier Put."},
		{Title: "Sizes of pools", Text: "H5 compares published pools of several sizes under 500 clients that send back to back: one to four workers for each core and 30, 100 and 300, each with the rule's queue, and the rule's largest size with a queue of 0, 2, 5 and 20 places for each worker. SQLite and PostgreSQL look a patient up by id, from memory, over 95 connections at most, and compete with the clients for the processors, as the look-ups that compute do. The pools take turns, in a random order."},
		{Title: "Scaled runs", Text: "How many requests a client has decides what is refused, as do clients, workers and queue places. So claims about the sizes are open when other sizes were run."},
	},
}
