package mixes

import (
	"slices"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/load/judge"
)

// The figures. A contestant that was killed has done what it had until then, of the whole
// measurement.
var (
	inTime   = ledger.Extra("in_time", "share answered in time")
	ofFair   = ledger.Extra("of_fair", "share of its fair share")
	workDone = ledger.Figure{Key: "work", Name: "work done in time", OfKilled: true}
)

// openFor says what is missing for a comparison of Spillway with the others under a load.
func openFor(e *ledger.Evidence, engine string, x mix, times float64, others []string) string {
	ran := func(name string) bool { return e.Has(x.key(engine, times, name)) }
	anyOf := func(ok func(ledger.Key) bool) bool { return len(e.Keys(ok)) > 0 }
	switch {
	case ran(Spillway) && !slices.ContainsFunc(others, func(name string) bool { return !ran(name) }):
		return ""
	case ran(Spillway) || anyOf(func(k ledger.Key) bool { return k.Setup == x.key(engine, times, "").Setup }):
		return "The goal compares with every contestant: run it without --contestant."
	case anyOf(func(k ledger.Key) bool {
		return slices.ContainsFunc(mixes, func(y mix) bool { return k.Setup == y.key(engine, 1, "").Setup })
	}):
		return "The goal speaks of both mixes: run it without --mix."
	}
	return "It needs " + engine + ": run it without --database, and with --postgres URL."
}

// eachMix is a case for each mix over each database.
func eachMix(value func(engine string, x mix) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for _, engine := range engines {
			for _, x := range mixes {
				all := x.key(engine, x.above, "")
				out = append(out, ledger.Case{Setup: all.Setup + ", " + all.Load, Value: value(engine, x), Open: openFor(e, engine, x, x.above, names)})
			}
		}
		return out
	}
}

// eachKind is a case for each kind of each mix over each database; of a mix that was not run,
// its first kind stands for all.
func eachKind(load func(mix) float64, others []string, value func(all ledger.Key, k kind) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for _, engine := range engines {
			for _, x := range mixes {
				all := x.key(engine, load(x), Spillway)
				if why := openFor(e, engine, x, load(x), others); why != "" {
					out = append(out, ledger.Case{Setup: all.Setup + ", " + all.Load, Value: value(all, x.kinds[0]), Open: why})
					continue
				}
				for _, k := range x.kinds {
					out = append(out, ledger.Case{Setup: all.Setup + ", " + of(all, k).Load, Value: value(all, k)})
				}
			}
		}
		return out
	}
}

var family = ledger.Family{
	ID:    "mixes",
	Title: "Work of several lengths, each with its own deadline, in front of a real database",
	Claims: []ledger.Claim{
		{ID: "mixes-1", Goal: true, Title: "below the capacity a limiter that is told nothing loses no more than three points of any kind of work",
			Note: "A point is a hundredth of the requests of the kind. It is compared with no limit at all, which got the same requests.",
			Parts: []ledger.Part{{Subject: "the share lost against no limit", Unit: "points", Rule: judge.AtMost(3), Spread: .5, Min: -100, Max: 100,
				Cases: eachKind(func(x mix) float64 { return x.below }, []string{None}, func(all ledger.Key, k kind) ledger.Term {
					return ledger.Of(of(all.By(None), k), inTime).Minus(ledger.Of(of(all, k), inTime))
				})}}},
		{ID: "mixes-2", Goal: true, Title: "at one and a half times the capacity as much work is done in time as behind the best of the others, and no kind of it is starved",
			Note: "Work is counted in milliseconds that it takes alone: of what is offered, the part that was answered before its deadline. The fair share of every kind is the same: the work that the database can do of the work that was offered.",
			Parts: []ledger.Part{
				{ID: "work", Title: "it does at least 90 % of the work of the best of the others", Subject: "work done in time, Spillway/the best of the others", Unit: "x", Rule: judge.AtLeast(.9), Spread: .03,
					Cases: eachMix(func(engine string, x mix) ledger.Term {
						var others []ledger.Term
						for _, name := range names {
							if name != Spillway {
								others = append(others, ledger.Of(x.key(engine, x.above, name), workDone))
							}
						}
						return ledger.Of(x.key(engine, x.above, Spillway), workDone).Over(ledger.Best(others...))
					})},
				{ID: "share", Title: "every kind gets at least 60 % of its fair share", Subject: "the part of its fair share that the kind gets", Unit: "%", Rule: judge.AtLeast(60), Spread: 2,
					Cases: eachKind(func(x mix) float64 { return x.above }, nil, func(all ledger.Key, k kind) ledger.Term { return ledger.Of(of(all, k), ofFair) })},
			}},
	},
	Columns: []ledger.Column{
		{Key: inTime.Key, Name: "answered in time, %", Format: "decimals"}, {Key: ofFair.Key, Name: "of its fair share, %", Format: "decimals"},
		{Key: workDone.Key, Name: "work in time, ms a second"},
	},
	Method: []ledger.Note{
		{Title: "The work", Text: "One query a request: the sum and the number of the values of some rows at a random place of a table of 100,000, as many times over as the kind is milliseconds long. How many rows a millisecond makes is measured first, by one client. All of it is in memory: what is scarce is the processor, which the service, its clients and PostgreSQL share. The service has at most 95 connections or readers of a SQLite file open, whatever bounds it: a query more waits for one until its deadline, without a limit too."},
		{Title: "The capacity", Text: "Of 1, 2, 4, 8 and 16 clients that ask back to back, for the kinds in turn and without a limit, the most good answers a second are the capacity, and the smallest number within 5 % of that is the right size of the semaphore. The loads are multiples of that capacity."},
		{Title: "The load", Text: "An open loop with Poisson arrivals, of which each draws its kind. All contestants get the same requests in a repeat. A measurement follows a warm-up under the same load, and the load goes on until the last request that counts has its outcome, so that none is answered late by a database that has nothing else to do. At 1.5 times the capacity a queue grows by half a second each second, and a report that waits ten seconds is late only after twenty; before that a service without a limit seems to do everything. So a surge comes before the warm-up, of five times the capacity, which makes that queue in a quarter of the longest deadline; contestants that refuse have no queue of it. One whose clients sent late (p99 above 50 ms) is made again, at most twice; if they are still late, it does not count. Without a limit and above the capacity it always counts: queries then take the processors from the clients, too."},
		{Title: "Outcomes", Text: "Good is an answer within the deadline of its kind, since the request was sent, a timeout one that came later or never, refused what the contestant sent away. Latency counts from the intended start."},
		{Title: "What is not measured", Text: "A measurement of some seconds offers the longest kind some ten times, of which one is ten points: what a repeat says about that kind is coarse, and the middle one of the repeats counts. Spillway runs twice at one and a half times the capacity: its difference from itself is the noise floor there. A database on a machine of its own, a disk that is waited for and writes are not in it."},
	},
}
