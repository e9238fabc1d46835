package saturation

import (
	"slices"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/load/judge"
)

// The figures. A contestant that was killed has answered what it had until then.
var (
	goodput  = ledger.Figure{Name: "goodput", OfKilled: true, Value: ledger.Goodput.Value}
	capacity = ledger.Extra("capacity", "capacity")
	slowest  = ledger.Extra("p99_ms", "p99 of good answers")
)

// each is a case for each load of each resource that fits.
func each(needed []string, fits func(resource) bool, value func(r resource, times float64) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for _, r := range resources {
			if !fits(r) {
				continue
			}
			for _, times := range loads {
				k := key(r, times, Spillway)
				c := ledger.Case{Setup: r.setup + ", " + k.Load, Value: value(r, times)}
				ran := func(name string) bool { return e.Has(k.By(name)) }
				switch {
				case !slices.ContainsFunc(names, ran) && r.database:
					c.Open = "It needs PostgreSQL: run it with --postgres URL and without --resource."
				case !slices.ContainsFunc(names, ran):
					c.Open = "The goal speaks of every resource: run it without --resource."
				case !ran(Spillway) || slices.ContainsFunc(needed, func(name string) bool { return !ran(name) }):
					c.Open = "The goal compares with every contestant: run it without --contestant."
				}
				out = append(out, c)
			}
		}
		return out
	}
}

func ofCapacity(r resource, times float64) ledger.Term {
	k := key(r, times, Spillway)
	return ledger.Of(k, goodput).Over(ledger.Of(k, capacity)).Times(100)
}

func computes(r resource) bool { return r.id == Processor || r.id == Around }

var family = ledger.Family{
	ID:    "saturation",
	Title: "A service whose processors, collector or database run short",
	Claims: []ledger.Claim{
		{ID: "overload-4", Goal: true, Title: "with its own processors short a service answers nearly all that it can do, and soon",
			Note: "What can be done is the most good answers a second of clients that ask back to back.",
			Parts: []ledger.Part{
				{ID: "processors", Title: "at least 85 % where requests compute", Subject: "goodput of Spillway/what can be done", Unit: "%", Rule: judge.AtLeast(85), Spread: 3,
					Cases: each(nil, computes, ofCapacity)},
				{ID: "collector", Title: "at least 70 % where requests allocate", Subject: "goodput of Spillway/what can be done", Unit: "%", Rule: judge.AtLeast(70), Spread: 5,
					Cases: each(nil, func(r resource) bool { return r.id == Collector }, ofCapacity)},
				{ID: "p99", Title: "99 of 100 good answers take at most half a second", Subject: "p99 of good answers", Unit: "ms", Rule: judge.AtMost(500), Spread: 20,
					Cases: each(nil, func(r resource) bool { return !r.database }, func(r resource, times float64) ledger.Term { return ledger.Of(key(r, times, Spillway), slowest) })},
			}},
		{ID: "overload-5", Goal: true, Title: "in front of PostgreSQL it answers at least 95 % of what the best contestant answers",
			Note: "The semaphore is told the right size, which an operator has to guess.",
			Parts: []ledger.Part{{Subject: "goodput of Spillway/the best of the others", Unit: "%", Rule: judge.AtLeast(95), Spread: 3,
				Cases: each(names, func(r resource) bool { return r.database }, func(r resource, times float64) ledger.Term {
					var others []ledger.Term
					for _, name := range names {
						if name != Spillway {
							others = append(others, ledger.Of(key(r, times, name), goodput))
						}
					}
					return ledger.Of(key(r, times, Spillway), goodput).Over(ledger.Best(others...)).Times(100)
				})}}},
	},
	Columns: []ledger.Column{
		{Key: capacity.Key, Name: "what can be done, a second"}, {Key: slowest.Key, Name: "p99 of good answers, ms"},
	},
	Method: []ledger.Note{
		{Title: "What is scarce", Text: "processor: SHA-256 for 4 ms, in a process with GOMAXPROCS=1. around: half a millisecond of that before and after a sleep of 20 ms. collector: a list of 40,000 small structs, garbage after the answer. sort: PostgreSQL sorts 5,000 of its rows. hotrows: a transaction updates one of three rows and commits 3 ms later. The service has at most 60 connections of PostgreSQL."},
		{Title: "What can be done", Text: "The most good answers a second of 1, 2, 4, 8, 16 and 32 clients that ask back to back, without a contestant. The least of these numbers that reaches 95 % of it is the size of the semaphore. The loads are multiples."},
		{Title: "The load", Text: "An open loop with Poisson arrivals. Each request waits a second and says so in a header. Latency counts from the intended start. A measurement follows a warm-up under the same load. One whose clients sent late (p99 above 50 ms) is made again, at most twice; if they are still late, the measurement does not count."},
		{Title: "Processors", Text: "With one processor a handler that computes runs to its end before the next request is read. So hardly any work is in flight inside a contestant, and a limit of concurrency refuses nothing while every request is late. The clients use the other processor of the machine; with none left for them they send late."},
	},
}
