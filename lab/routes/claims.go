package routes

import (
	"math"

	"github.com/spillway-go/spillway/lab/judge"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// The figures of the claims. Those of the published harness have "_total" after the key.
const total = "_total"

var (
	processor = ledger.Extra("cpu_ns", "processor time for a request")
	clock     = ledger.Extra("wall_ns", "time on the clock for a request")
	allocs    = ledger.Extra("allocs", "allocations of a request")
	pause     = ledger.Extra("pause_p99_us", "p99 of the collector's pauses")
	wrong     = ledger.Extra("wrong", "other requests' values seen")
	panics    = ledger.Extra("panics", "panics")

	// whole is without the fractions of pools that a collection has emptied.
	whole = ledger.Figure{Name: "allocations of a request", Value: func(r *results.Run) float64 {
		if x, ok := r.Extra[allocs.Key]; ok {
			return math.Round(x)
		}
		return math.NaN()
	}}
)

var family = ledger.Family{
	ID:     "R",
	Title:  "A pooled request context is compared with a fresh one, and typed routes with hand-written ones and with other frameworks",
	Source: `a benchmark report, "sync.Pool Performance Analysis for Route Package"`,
	Claims: []ledger.Claim{
		saves(1, "R1", "JSON POST: pooled is 6.4 % faster", "20,782 vs 22,206 ns/op; 52 vs 53 allocs", 6.4, judge.Between(4, 9),
			"Half of the published time and 21 of its allocations are the harness, which makes a request and a recorder for every iteration. Five runs for each build, without an interval.", JSON),
		saves(-1, "R2", "form: pooled is 5.4 % slower", "28,867 vs 27,392 ns/op; 97 vs 95 allocs", 5.4, judge.Between(3, 8),
			"The published request type appears to have no form tags. Then nothing is bound, what is required is missing, and the row measures a 400. Tags that work decide here; the 400 is shown beside.", Form, Untagged),
		saves(1, "R3", "JSON with a field of 500 characters: pooled is 13.1 % faster", "24,970 vs 28,751 ns/op; 53 vs 54 allocs", 13.1, judge.Between(8, 18),
			"The mean of the published fresh runs is 28,551 by their own raw data, and one outlier of 33,784 drives it; by medians the gain is 8 %.", Large),
		saves(-1, "R4", "parallel JSON: pooled is slower, by contention", "7,840 vs 5,798 ns/op: 26 % by the source's base, 35 % by the usual one", 35.2, judge.AtLeast(10),
			"The source divides by the pooled time; here, as everywhere, the fresh time is the base.", Parallel),
		saves(1, "R5", "GET: pooled is 9.9 % faster", "15,536 vs 17,237 ns/op; 36 vs 37 allocs", 9.9, judge.Between(6, 14), "", Get),
		{ID: "R6", Title: "over typical traffic pooled is 5.5 % faster", Published: "1.055x",
			Note:  "The traffic: 60 % JSON, 20 % GET, 10 % form, 5 % large, 5 % parallel. The published rows give 1.056 as the ratio of the mean times and 1.052 as the mean of the ratios; 1.055 is neither. Here both have to hold.",
			Parts: []ledger.Part{{Subject: "what fresh contexts take longer than pooled ones over the traffic", Unit: "%", Rule: judge.Between(3, 8), Spread: moves, Published: []float64{5.5}, Cases: traffic}}},
		{ID: "R7", Title: "pooling saves exactly one allocation a request everywhere and lowers the collector's pauses", Published: "−1 alloc (its own form row: +2); no figure of pauses",
			Note: "Allocations are counted by the runtime over all requests of a turn. A collection before each turn empties the pools, so that a few requests allocate all the same: one is 0.9 to 1.1 in the mean. Pauses are as the runtime counts them, all of one collection together, of the collection after each turn; turns are equally long.",
			Parts: []ledger.Part{
				{ID: "allocs", Title: "pooling saves exactly one allocation a request", Subject: "allocations of a request, fresh − pooled,", Kind: judge.Every, Rule: judge.Between(.9, 1.1), Published: []float64{1},
					Cases: each(Scenarios, func(scenario string) ledger.Term {
						return of(Net, scenario, Fresh, allocs).Minus(of(Net, scenario, Pooled, allocs))
					})},
				{ID: "pause", Title: "pooling makes the collector's pauses shorter", Subject: "p99 of the collector's pauses, pooled/fresh,", Unit: "x", Rule: judge.Below(1), Spread: .03,
					Cases: each([]string{JSON, Large}, func(scenario string) ledger.Term {
						return of(Net, scenario, Pooled, pause).Over(of(Net, scenario, Fresh, pause))
					})},
			}},

		goal("route-1", "a JSON POST with full validation takes at most 0.60 of mux, json v2 and validator, with at most 6 allocations",
			takes("a JSON POST takes at most 0.60 of the time by hand", "our time/that of mux, json v2 and validator", .6, duel{"", JSON, Spillway, MuxValidator}),
			atMost(6, JSON)),
		goal("route-2", "a typed GET takes at most 1.05 of the best hand-written handler, with at most 2 allocations",
			takes("a typed GET takes at most 1.05 of each hand-written one", "our time/that by hand", 1.05, byHand...),
			atMost(2, Get)),
		goal("route-3", "a typed route takes at most 5 % more than the same by hand on the same router, and no further allocation",
			takes("a typed route takes at most 1.05 of the same by hand", "time typed/by hand", 1.05, taxed...),
			ledger.Part{ID: "allocs", Title: "and no further allocation", Subject: "allocations beyond those by hand", Kind: judge.Never, Rule: judge.AtMost(0),
				Cases: builds(taxed, func(setup string, d duel) ledger.Term {
					return of(setup, d.scenario, d.ours, whole).Minus(of(setup, d.scenario, d.theirs, whole))
				})}),
		goal("route-4", "a form takes at most 0.55 of mux and validator, with at most 10 allocations",
			takes("a form takes at most 0.55 of the time by hand", "our time/that of mux and validator", .55, duel{"", Form, Spillway, MuxValidator}),
			atMost(10, Form)),
		goal("route-5", "a goroutine that outlives its handler sees no other request's value and does not panic",
			never("values", "it sees no other request's value", wrong), never("panics", "it does not panic", panics)),
	},
	Sources: []ledger.Source{{Name: `a benchmark report, "sync.Pool Performance Analysis for Route Package"`, What: "whose layer is rendered here from its description"}},
	Columns: []ledger.Column{
		{Key: "cpu_ns", Name: "processor time for a request, net", Format: "nanos"}, {Key: "allocs", Name: "allocations, net", Format: "decimals"}, {Key: "bytes", Name: "allocated, net", Format: "size"},
		{Key: "wall_ns", Name: "time on the clock for a request, net", Format: "nanos"},
		{Key: "cpu_ns_total", Name: "processor time with the harness", Format: "nanos"}, {Key: "harness_share", Name: "of it the harness, %", Format: "decimals"}, {Key: "allocs_total", Name: "allocations with the harness", Format: "decimals"},
		{Key: "behind", Name: "Spillway's time/this one's", Format: "ratio"},
		{Key: "pause_p99_us", Name: "p99 of the pauses of the collection after a turn, µs"}, {Key: "pauses", Name: "such collections"},
		{Key: "wrong", Name: "other requests' values seen"}, {Key: "panics", Name: "panics"},
	},
	Behind: "behind",
	Method: []ledger.Note{
		{Title: "What is measured", Text: "Processor time of the process, user and system, over the requests of a turn. All contestants of a scenario are in one process and take turns of milliseconds, in a new order each round; the first round is a warm-up that finds out how many requests a turn has. No collection runs within a turn, because one more or less would be several per cent of it: one runs after each, and a turn is charged for as many as its garbage would have caused. Figures are medians over the rounds, ratios are taken within a round. Time on the clock counts in the parallel scenario of the published shape only, where the claim is about contention."},
		{Title: "Net of the harness", Text: "Request, body reader and response writer are used again; before each request the request is copied from a template, since muxes and handlers leave things in it. What that costs with a handler that does nothing (the row \"nothing\") is subtracted. The published harness makes a request and a httptest recorder for each iteration; it is run with the same builds, and the share of it is a figure."},
		{Title: "Two builds", Text: "A typed layer over gin in the published shape: a function of a request and a response type, names, descriptions, middleware, binding from path, query and body by content type, Server-Timing for decoding, answers that choose their status or are a file or a stream. One build takes its context from a sync.Pool, cleared when it is given back, and nothing else differs. The published builds differed elsewhere: the pooled one had lost a Sprintf, which is the third row, and what is shown beside with the published harness. The fresh build runs twice; what it differs from itself is noise."},
		{Title: "The form row", Text: "With form tags that work, a form is bound and answered 201. The published type appears to have had none: gin then looks for fields by their Go names, finds none, and what is required is missing. The row without tags measures such a 400."},
		{Title: "The traffic", Text: "60 % JSON, 20 % GET, 10 % form, 5 % large, 5 % parallel, averaged as the ratio of the mean times and as the mean of the ratios."},
		{Title: "The same work for all", Text: "Path, query and body are bound, seven fields are checked, everything that was sent is in the answer; a test sends good and bad requests to all and compares status and answer. By hand: net/http's mux with checks written out, the first fault told; with go-playground/validator, all faults told; the same on chi; gin's own binding, which brings the validator; echo's binding with it. Bodies are bounded to 1 MiB and unknown JSON members refused by all."},
		{Title: "What differs all the same", Text: "Spillway also refuses unknown form fields and query parameters, repeated members and more than one document, and lists every fault with a pointer. huma answers faults with 422, reads no urlencoded form (it has no figure there) and takes a body without a content type for JSON; with it, as with the hand-written handlers, a wrong type ends the list of faults. fuego takes every content type that it does not know for JSON and writes Server-Timing, as only \"spillway with Server-Timing\" does otherwise."},
		{Title: "fiber", Text: "It is no net/http handler: its request is fasthttp's, filled again each time, which the row \"nothing on fasthttp\" does as well. Its figures do not stand beside the others': a server on fasthttp saves elsewhere, see experiment G7, and its strings are valid only until the handler returns."},
		{Title: "Version 2 of encoding/json", Text: "In a build with GOEXPERIMENT=jsonv2, the hand-written handlers call version 2 and the frameworks still call version 1, which is then implemented by version 2."},
		{Title: "After the handler has returned", Text: "Each of 20,000 handlers starts a goroutine with its context and does not wait for it. Once the handler has returned, the goroutine reads a value from the context: it is its own request's, another's, or reading panics. The same runs as a test under the race detector."},
	},
}
