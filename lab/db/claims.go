package db

import (
	"math"
	"slices"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/load/judge"
)

// The figures, before queries became dearer and after it.
var phases = []struct {
	words      string
	rate, time ledger.Figure
}{
	{"before the change", ledger.Extra("before", "queries a second"), ledger.Extra("p99_before", "p99 of a query")},
	{"from 5 s after it", ledger.Extra("after", "queries a second after the change"), ledger.Extra("p99_after", "p99 of a query after the change")},
}

// same is by how much two pools may differ and count as equally good: then the smaller is
// the best.
const same = 0.05

// best is the pool with the most queries a second in most repeats.
func best(e *ledger.Evidence, engine string, rate ledger.Figure) ledger.Key {
	most, chosen := 0., key(engine, poolOf(1))
	pools := e.Keys(func(k ledger.Key) bool { return k.Setup == engine && k.Pattern != Spillway })
	for _, k := range pools {
		if x := median(e, k, rate); x > most*(1+same) {
			most, chosen = x, k
		}
	}
	return chosen
}

// median is a figure of a cell in the middle of its repeats; NaN without one.
func median(e *ledger.Evidence, k ledger.Key, f ledger.Figure) float64 {
	var all []float64
	for _, r := range e.Runs(k) {
		if x, ok := r.Extra[f.Key]; ok {
			all = append(all, x)
		}
	}
	return ledger.Median(all)
}

// against compares the limiter with the best pool of each database, before the change and
// after it.
func against(figure func(rate, time ledger.Figure) ledger.Figure) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for _, engine := range engines {
			for _, p := range phases {
				us, them := key(engine, Spillway), best(e, engine, p.rate)
				f := figure(p.rate, p.time)
				c := ledger.Case{Setup: engine + ", " + p.words, Value: ledger.Of(us, f).Over(ledger.Of(them, f)), Remark: "The best pool was the " + them.Pattern + "."}
				switch settle := e.ParamOf(us, "settle_s"); {
				case !e.Has(us):
					c.Open, c.Remark = "It needs "+engine+": run it without --database and --part, and with --postgres URL.", ""
				case !math.IsNaN(settle) && settle > 5:
					c.Open = "The goal gives it 5 s: run it without --settle."
				}
				out = append(out, c)
			}
		}
		return out
	}
}

// audited are the figures of a contestant under all numbers of clients.
func audited(e *ledger.Evidence, engine, contestant string, f ledger.Figure) []ledger.Term {
	all := e.All(f, func(k ledger.Key) bool { return k.Setup == auditSetup(engine) && k.Pattern == contestant })
	if len(all) == 0 {
		all = []ledger.Term{ledger.Of(auditKey(engine, 64, contestant), f)} // which is said to be missing
	}
	return all
}

// overEach is a case for each database.
func overEach(value func(e *ledger.Evidence, engine string) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for _, engine := range engines {
			c := ledger.Case{Setup: engine, Value: value(e, engine)}
			if !slices.ContainsFunc(c.Value.Keys(), e.Has) {
				c.Open = "It needs " + engine + ": run it without --database and --part, and with --postgres URL."
			}
			out = append(out, c)
		}
		return out
	}
}

var family = ledger.Family{
	ID:    "db",
	Title: "A limiter that is told nothing, in front of real databases, beside pools of every size",
	Claims: []ledger.Claim{
		{ID: "engine-4", Goal: true, Title: "a limiter without a number does as well in front of SQLite and PostgreSQL as the best pool of connections, and again within 5 s of a change",
			Note: "Of pools that differ by less than 5 % in throughput the smallest counts as the best: that is how well a pool repeats itself. The time is that of a query in the database, from its admission on: what a client waits besides follows from the number of clients and the throughput.",
			Parts: []ledger.Part{
				{ID: "throughput", Title: "it does at least 90 % of the best pool's queries", Subject: "queries a second, Spillway/the best pool", Unit: "x", Rule: judge.AtLeast(.9), Spread: .03,
					Cases: against(func(rate, _ ledger.Figure) ledger.Figure { return rate })},
				{ID: "p99", Title: "the p99 of a query is at most 1.25 times the best pool's", Subject: "p99 of a query, Spillway/the best pool", Unit: "x", Rule: judge.AtMost(1.25), Spread: .05,
					Cases: against(func(_, time ledger.Figure) ledger.Figure { return time })},
			}},
		{ID: "audit-1", Goal: true, Title: "audit costs at most a tenth of what the service can answer, and overload loses no record",
			Note: "A record is committed and synced before the answer leaves, with those of all others that came meanwhile.",
			Parts: []ledger.Part{
				{ID: "throughput", Title: "with audit it answers at least 90 % as much", Subject: "good answers a second with audit/without", Unit: "x", Rule: judge.AtLeast(.9), Spread: .03,
					Cases: overEach(func(e *ledger.Evidence, engine string) ledger.Term {
						return ledger.Best(audited(e, engine, Audit, answered)...).Over(ledger.Best(audited(e, engine, Unaudited, answered)...))
					})},
				{ID: "records", Title: "no answer is without a record, refusals among them", Subject: "the count of answers without a record", Kind: judge.Never, Rule: judge.Exactly(0),
					Cases: overEach(func(e *ledger.Evidence, engine string) ledger.Term {
						return ledger.Largest(append(audited(e, engine, Audit, unrecorded), audited(e, engine, Flooded, unrecorded)...)...)
					})},
			}},
	},
	Columns: []ledger.Column{
		{Key: answered.Key, Name: "good answers/s"}, {Key: unrecorded.Key, Name: "answers without a record"}, {Key: "commits", Name: "commits"},
		{Key: "before", Name: "queries/s"}, {Key: "p99_before", Name: "p99 of a query", Format: "nanos"}, {Key: "limit_before", Name: "at a time", Format: "decimals"},
		{Key: "after", Name: "queries/s when dearer"}, {Key: "p99_after", Name: "p99 of a query when dearer", Format: "nanos"}, {Key: "limit_after", Name: "at a time when dearer", Format: "decimals"},
		{Key: "refused", Name: "refused"},
	},
	Method: []ledger.Note{
		{Title: "The query", Text: "The sum and the number of the values of each of seven kinds, over some thousand rows at a random place of a table of 100,000, by its primary key. All of it is in memory: what is scarce is the processor, which a database shares with its clients. Each contestant has 95 connections open, or 64 readers of a SQLite file, and decides how many of them are used at a time."},
		{Title: "A closed loop", Text: "64 clients ask back to back, and wait for their turn as long as it takes. A client that the limiter refuses asks again when it is told to."},
		{Title: "The change", Text: "From one moment on each query sums up four times as many rows. A pool is measured 0.3 s after its start and after the change, for it has nothing to find out; the limiter after its warm-up, and 5 s after the change."},
		{Title: "Audit", Text: "The service is run by its own command, without added latency or errors: what is scarce is the processor, on which the load generator runs as well. Clients read one patient after the other, back to back, with a verified token; without a bound, so that only audit differs, and of the numbers of clients the one with the most answers counts, for each on its own: with audit it takes more of them. The service with audit and two without it run side by side, and are loaded one at a time, in turns of some 750 ms and a new order each round: what else the machine and its disk do meets all of them. Overloaded, the service is adaptive and has three times as many clients. Its records are then read again: those that are in a chain without a fault are compared with what the service has answered. Beside SQLite they are in a file of their own, beside PostgreSQL in the same database."},
		{Title: "Noise", Text: "The limiter runs twice in every repeat: what it differs from itself is the noise floor, as is what the service without audit differs from itself."},
	},
}
