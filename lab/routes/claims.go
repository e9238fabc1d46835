package routes

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/bouts"
	"github.com/spillway-go/spillway/lab/callgrind"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

const (
	manyCores = 16  // for a claim about contention
	moves     = 0.8 // by so much a gain, in per cent, moves between sessions
)

// The figures of the claims.
var (
	processor = ledger.Extra("cpu_ns", "processor time for a request")
	clock     = ledger.Extra("wall_ns", "time on the clock for a request")
	allocs    = ledger.Extra("allocs", "allocations of a request")
	wrong     = ledger.Extra("wrong", "other requests' values seen")
	panics    = ledger.Extra("panics", "panics")
	pause     = ledger.Extra("pause_us", "total of the collector's pauses in 100,000 requests")

	collections = ledger.Extra("collections", "collections in 100,000 requests")

	// whole is without the fractions of pools that a collection has emptied.
	whole = ledger.Figure{Name: "allocations of a request", Value: func(r *results.Run) float64 {
		if n, ok := r.Extra[allocs.Key]; ok {
			return math.Round(n)
		}
		return math.NaN()
	}}
)

var family = ledger.Family{
	ID: "R", Title: "A pooled request context is compared with a fresh one, and typed routes with hand-written ones and with other frameworks",
	Source: `a benchmark report, "sync.Pool Performance Analysis for Route Package"`,
	Claims: []ledger.Claim{
		saves(1, "R1", "JSON POST: pooled is 6.4 % faster", "20,782 vs 22,206 ns/op; 52 vs 53 allocs", 6.4, judge.Between(4, 9),
			"Half of the published time and 21 of its allocations are the harness, which makes a request and a recorder for every iteration. Five runs for each build, without an interval.", JSON),
		saves(-1, "R2", "form: pooled is 5.4 % slower", "28,867 vs 27,392 ns/op; 97 vs 95 allocs", 5.4, judge.Between(3, 8),
			"The published request type appears to have no form tags. Then nothing is bound, what is required is missing, and the row measures a 400. Here tags work.", Form),
		saves(1, "R3", "JSON with a field of 500 characters: pooled is 13.1 % faster", "24,970 vs 28,751 ns/op; 53 vs 54 allocs", 13.1, judge.Between(8, 18),
			"The mean of the published fresh runs is 28,551 by their own raw data, and one outlier of 33,784 drives it; by medians the gain is 8 %.", Large),
		saves(-1, "R4", "parallel JSON: pooled is slower, by contention", "7,840 vs 5,798 ns/op: 26 % by the source's base, 35 % by the usual one", 35.2, judge.AtLeast(10),
			"The source divides by the pooled time; here, as everywhere, the fresh time is the base.", Parallel),
		saves(1, "R5", "GET: pooled is 9.9 % faster", "15,536 vs 17,237 ns/op; 36 vs 37 allocs", 9.9, judge.Between(6, 14), "", Get),
		{ID: "R6", Title: "over typical traffic pooled is 5.5 % faster", Published: "1.055x",
			Note:  "The traffic: 60 % JSON, 20 % GET, 10 % form, 5 % large, 5 % parallel. The published rows give 1.056 as the ratio of the mean times and 1.052 as the mean of the ratios; 1.055 is neither. Here both have to hold.",
			Parts: []ledger.Part{{Subject: "what fresh contexts take longer than pooled ones over the traffic", Unit: "%", Rule: judge.Between(3, 8), Spread: moves, Published: []float64{5.5}, Cases: counting(traffic)}}},
		{ID: "R7", Title: "pooling saves exactly one allocation a request everywhere and lowers the collector's pauses", Published: "−1 alloc (its own form row: +2); no figure of pauses",
			Note: "Allocations are counted by the runtime over all requests of a turn. A collection before each turn empties the pools, so that a few requests allocate all the same: one is 0.9 to 1.1 in the mean. Collections and pauses are the runtime's count over 100,000 requests with JSON, with the collector left alone.",
			Parts: []ledger.Part{
				{ID: "allocs", Title: "pooling saves exactly one allocation a request", Subject: "allocations of a request, fresh − pooled,", Kind: judge.Every, Rule: judge.Between(.9, 1.1), Published: []float64{1},
					Cases: ledger.Each(Scenarios, func(scenario string) ledger.Term {
						return of(Net, scenario, Fresh, allocs).Minus(of(Net, scenario, Pooled, allocs))
					})},
				lower("collections", "pooling lowers the number of collections", collections, .01),
				lower("pause", "pooling lowers the total of the collector's pauses", pause, .03),
			}},
		{ID: "R8", Title: "larger payloads amplify what pooling saves", Published: "13.1 % at 500 characters, 6.4 % of the smaller JSON",
			Note: "Pooling saves 1.5 times as many instructions at 500 characters as at 50 if the one saving is more than 1.5 times the other. The difference is judged, because the ratio of two savings near 0 has no mean.",
			Parts: []ledger.Part{{Subject: "instructions saved of a request at 500 characters − 1.5 × those at 50", Rule: judge.Above(0),
				Cases: counting(func(*ledger.Evidence) []ledger.Case {
					saved := func(scenario string) ledger.Term {
						return of(ByCount, scenario, Fresh, bouts.Instructions).Minus(of(ByCount, scenario, Pooled, bouts.Instructions))
					}
					return []ledger.Case{{Setup: JSON, Value: saved(Large).Minus(saved(Short).Times(1.5))}}
				})}}},
		{ID: "R9", Title: "deferred cleanup costs nothing against explicit cleanup", Published: "a rule, no figure",
			Note: "Of the JSON POST, which is most of the traffic, and of the GET, which is the shortest request.",
			Parts: []ledger.Part{{Subject: "instructions of a request with defer/without", Unit: "x", Rule: judge.Between(.99, 1.01), Spread: .001,
				Cases: counting(ledger.Each([]string{JSON, Get}, func(scenario string) ledger.Term {
					return of(ByCount, scenario, Pooled, bouts.Instructions).Over(of(ByCount, scenario, Explicit, bouts.Instructions))
				}))}}},

		{ID: "route-1", Goal: true, Title: "a JSON POST with full validation takes at most 0.60 of mux, json v2 and validator, with at most 6 allocations", Parts: []ledger.Part{
			takes("a JSON POST takes at most 0.60 of the time by hand", "our time/that of mux, json v2 and validator", .6, duel{"", JSON, Spillway, MuxValidator}),
			atMost(6, JSON)}},
		{ID: "route-2", Goal: true, Title: "a typed GET takes at most 1.05 of the best hand-written handler, with at most 2 allocations", Parts: []ledger.Part{
			takes("a typed GET takes at most 1.05 of each hand-written one", "our time/that by hand", 1.05, byHand...),
			atMost(2, Get)}},
		{ID: "route-3", Goal: true, Title: "a typed route takes at most 5 % more than the same by hand on the same router, and no further allocation", Parts: []ledger.Part{
			takes("a typed route takes at most 1.05 of the same by hand", "time typed/by hand", 1.05, taxed...),
			{ID: "allocs", Title: "it allocates no more often than code by hand", Subject: "allocations beyond those by hand", Kind: judge.Never, Rule: judge.AtMost(0),
				Cases: builds(taxed, func(setup string, d duel) ledger.Term {
					return of(setup, d.scenario, d.ours, whole).Minus(of(setup, d.scenario, d.theirs, whole))
				})}}},
		{ID: "route-4", Goal: true, Title: "a form takes at most 0.55 of mux and validator, with at most 10 allocations", Parts: []ledger.Part{
			takes("a form takes at most 0.55 of the time by hand", "our time/that of mux and validator", .55, duel{"", Form, Spillway, MuxValidator}),
			atMost(10, Form)}},
		{ID: "route-5", Goal: true, Title: "a goroutine that outlives its handler sees no other request's value and does not panic", Parts: []ledger.Part{
			never("values", "it sees no other request's value", wrong), never("panics", "it does not panic", panics)}},
	},
	Sources: []ledger.Source{{Name: `a benchmark report, "sync.Pool Performance Analysis for Route Package"`, What: "whose layer is rendered here from its description"}},
	Columns: []ledger.Column{
		{Key: "cpu_ns", Name: "processor time for a request, net", Format: "nanos"}, {Key: "allocs", Name: "allocations, net", Format: "decimals"}, {Key: "bytes", Name: "allocated, net", Format: "size"},
		{Key: "instructions", Name: "instructions for a request, net"},
		{Key: "wall_ns", Name: "time on the clock for a request, net", Format: "nanos"},
		{Key: "behind", Name: "Spillway's time/this one's", Format: "ratio"},
		{Key: "collections", Name: "collections in 100,000 requests"}, {Key: "pause_us", Name: "their pauses", Format: "micros"},
		{Key: "wrong", Name: "other requests' values seen"}, {Key: "panics", Name: "panics"},
	},
	Behind: "behind",
	Method: []ledger.Note{
		{Title: "What is measured", Text: "Processor time of the process, user and system, over the requests of a turn. All contestants of a scenario are in one process and take turns of milliseconds, in a new order each round; the first round is a warm-up that finds out how many requests a turn has. No collection runs within a turn, because one more or less would be several per cent of it: one runs after each, and a turn is charged for as many as its garbage would have caused. Figures are medians over the rounds, ratios are taken within a round; where pooled and fresh contexts are compared, which differ by a few per cent, the lower quartile of either's rounds counts instead, because what else the machine does only makes a turn slower. Time on the clock counts in the parallel scenario of the published shape only, where the claim is about contention."},
		{Title: "Net of the harness", Text: "Request, body reader and response writer are used again; before each request the request is copied from a template, since muxes and handlers leave things in it. What that costs with a handler that does nothing (the row \"nothing\") is subtracted. The published harness makes a request and a httptest recorder for each iteration, which is half of the published time."},
		{Title: "Instructions", Text: "Where Valgrind is installed, callgrind counts the instructions of some hundred requests of each build (--counted) in each of three rounds, in a new order each round, in one process with one processor and without a collector, net of the harness in the same round. Other load does not change them. What they do not show is contention, collections and what the kernel does; a parallel request counts as one that is not. They decide what pooling is worth, and the times stand beside."},
		{Title: "Two builds", Text: "A typed layer over gin in the published shape: a function of a request and a response type, names, descriptions, middleware, binding from path, query and body by content type, Server-Timing for decoding, answers that choose their status or are a file or a stream. One build takes its context from a sync.Pool, cleared when it is given back, and nothing else differs. The published builds differed elsewhere: the pooled one had lost a Sprintf. The fresh build runs twice; what it differs from itself is noise."},
		{Title: "The form row", Text: "With form tags that work, a form is bound and answered 201. The published type appears to have had none: gin then looks for fields by their Go names, finds none, what is required is missing, and the answer is a 400."},
		{Title: "The traffic", Text: "60 % JSON, 20 % GET, 10 % form, 5 % large, 5 % parallel, averaged as the ratio of the mean times and as the mean of the ratios."},
		{Title: "The same work for all", Text: "Path, query and body are bound, seven fields are checked, everything that was sent is in the answer; a test sends good and bad requests to all and compares status and answer. By hand: net/http's mux with checks written out, the first fault told; with go-playground/validator, all faults told; the same on chi; gin's own binding, which brings the validator. Bodies are bounded to 1 MiB and unknown JSON members refused by all."},
		{Title: "What differs all the same", Text: "Spillway also refuses unknown form fields and query parameters, repeated members and more than one document, and lists every fault with a pointer. With the hand-written handlers a wrong type ends the list of faults."},
		{Title: "Version 2 of encoding/json", Text: "In a build with GOEXPERIMENT=jsonv2, the hand-written handlers call version 2 and the frameworks still call version 1, which is then implemented by version 2."},
		{Title: "After the handler has returned", Text: "Each of 20,000 handlers starts a goroutine with its context and does not wait for it. Once the handler has returned, the goroutine reads a value from the context: it is its own request's, another's, or reading panics. The same runs as a test under the race detector, but for the pooled context, which the detector stops."},
	},
}

func of(setup, scenario, name string, f ledger.Figure) ledger.Term {
	return ledger.Of(ledger.Key{Setup: setup, Load: scenario, Pattern: name}, f)
}

// shape is a way to measure the published layer.
type shape struct{ setup, words string }

// shapes are compared. The first that can show a claim decides: other load does not change
// instructions.
var shapes = []shape{{ByCount, "instructions, net of the harness"}, {Net, "time, net of the harness"}}

// took is what a request takes: by the clock where the claim is about contention, which
// no instructions show.
func (s shape) took(scenario, name string) ledger.Term {
	if s.setup == ByCount {
		return of(s.setup, scenario, name, bouts.Instructions)
	}
	f := processor
	if scenario == Parallel {
		f = clock
	}
	f.Undisturbed = true // pooling is worth a few per cent, and a busy neighbour costs ten
	return of(s.setup, scenario, name, f)
}

// lower is a part of R7 about the collector.
func lower(id, title string, f ledger.Figure, spread float64) ledger.Part {
	return ledger.Part{ID: id, Title: title, Subject: f.Name + ", pooled/fresh,", Unit: "x", Rule: judge.Below(1), Spread: spread,
		Cases: ledger.One(JSON, of(LeftAlone, JSON, Pooled, f).Over(of(LeftAlone, JSON, Fresh, f)))}
}

func percent(ratio ledger.Term) ledger.Term { return ratio.Minus(ledger.Const(1)).Times(100) }

// saves is a claim about what pooling saves in a scenario, in per cent of the fresh build's time; with
// the sign −1, about what it costs.
func saves(sign float64, id, title, published string, value float64, rule judge.Rule, note, scenario string) ledger.Claim {
	subject := map[float64]string{1: "what pooling saves", -1: "what pooling costs"}[sign]
	able := shapes
	if scenario == Parallel {
		able = shapes[1:]
	}
	return ledger.Claim{ID: id, Title: title, Published: published, Note: note, Parts: []ledger.Part{{
		Subject: subject, Unit: "%", Rule: rule, Spread: moves, Published: []float64{value}, Cases: counting(func(e *ledger.Evidence) (out []ledger.Case) {
			for i, s := range able {
				c := ledger.Case{Setup: s.words, Beside: i > 0, Value: percent(s.took(scenario, Pooled).Over(s.took(scenario, Fresh))).Times(-sign)}
				if procs := e.Param("gomaxprocs"); scenario == Parallel && procs < manyCores {
					c.Needs = fmt.Sprintf("The claim is about contention by at least %d processors, and GOMAXPROCS is %.0f.", manyCores, procs)
				}
				out = append(out, c)
			}
			return out
		})}}}
}

// counting says of the cases that rest on instructions what to do where none were counted.
func counting(cases func(*ledger.Evidence) []ledger.Case) func(*ledger.Evidence) []ledger.Case {
	ran := func(e *ledger.Evidence, setup string) bool {
		return e.Has(ledger.Key{Setup: setup, Load: Get, Pattern: Nothing})
	}
	return func(e *ledger.Evidence) []ledger.Case {
		out := cases(e)
		for i := range out {
			rests := slices.ContainsFunc(out[i].Value.Keys(), func(k ledger.Key) bool { return k.Setup == ByCount })
			if rests && ran(e, Net) && !ran(e, ByCount) {
				out[i].Open = callgrind.Missing
			}
		}
		return out
	}
}

// traffic is by how much fresh contexts take longer over the published mixture, averaged
// in both ways. By instructions the parallel requests are as those that are not.
func traffic(*ledger.Evidence) (out []ledger.Case) {
	for i, s := range shapes {
		fresh, pooled, ratios := ledger.Const(0), ledger.Const(0), ledger.Const(0)
		for _, scenario := range Scenarios {
			share := weights[scenario] / 100
			if s.setup == ByCount && scenario == Parallel {
				scenario = JSON
			}
			f, p := s.took(scenario, Fresh), s.took(scenario, Pooled)
			fresh, pooled, ratios = fresh.Plus(f.Times(share)), pooled.Plus(p.Times(share)), ratios.Plus(f.Over(p).Times(share))
		}
		out = append(out,
			ledger.Case{Setup: s.words + ", ratio of the mean times", Beside: i > 0, Value: percent(fresh.Over(pooled))},
			ledger.Case{Setup: s.words + ", mean of the ratios", Beside: i > 0, Value: percent(ratios)})
	}
	return out
}

// duel compares one of ours with another, in a scenario.
type duel struct{ words, scenario, ours, theirs string }

// taxed are duels of typed routes with the same by hand. byHand are those of a typed GET
// with each that is hand-written: who beats all of them beats the best.
var taxed, byHand = func() (taxed, byHand []duel) {
	for _, scenario := range []string{JSON, Form, Large, Get} {
		taxed = append(taxed, duel{scenario + " on net/http's mux", scenario, Spillway, Mux}, duel{scenario + " on gin", scenario, GinTyped, Gin})
	}
	for _, name := range []string{Mux, MuxValidator, Chi, Gin} {
		byHand = append(byHand, duel{"beside " + name, Get, Spillway, name})
	}
	return taxed, byHand
}()

// builds is a case for every duel in every build. The one with json v2 decides.
func builds(duels []duel, value func(setup string, d duel) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		ran := func(build string) bool {
			return e.Has(ledger.Key{Setup: contestOf + build, Load: Get, Pattern: Nothing})
		}
		for _, build := range []string{JSONv2, StdJSON} {
			for _, d := range duels {
				c := ledger.Case{Setup: strings.TrimPrefix(d.words+", "+build, ", "), Beside: build == StdJSON, Value: value(contestOf+build, d)}
				if build == JSONv2 && ran(StdJSON) && !ran(JSONv2) {
					c.Open = "The contestants were not run in a build with json v2: leave out --one-build."
				}
				out = append(out, c)
			}
		}
		return out
	}
}

func takes(title, subject string, bound float64, duels ...duel) ledger.Part {
	return ledger.AtMost(bound, "time", title, subject, builds(duels, func(setup string, d duel) ledger.Term {
		return of(setup, d.scenario, d.ours, processor).Over(of(setup, d.scenario, d.theirs, processor))
	}))
}

func atMost(n float64, scenario string) ledger.Part {
	return ledger.Part{ID: "allocs", Title: fmt.Sprintf("it needs at most %.0f allocations", n), Subject: "allocations of a " + scenario, Kind: judge.Never, Rule: judge.AtMost(n),
		Cases: builds([]duel{{scenario: scenario}}, func(setup string, d duel) ledger.Term { return of(setup, d.scenario, Spillway, whole) })}
}

func never(id, title string, f ledger.Figure) ledger.Part {
	return ledger.Part{ID: id, Title: title, Subject: f.Name + " in " + lateLoad, Kind: judge.Never, Rule: judge.Exactly(0),
		Cases: ledger.Each([]string{Spillway, GinTyped}, func(name string) ledger.Term { return of(late, lateLoad, name, f) })}
}
