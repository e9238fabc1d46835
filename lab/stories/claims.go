package stories

import (
	"fmt"
	"math"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

// The figures.
var (
	before    = ledger.Extra("before", "share of the requests answered well before the trigger")
	after     = ledger.Extra("after", "share of the requests answered well after the trigger")
	settled   = ledger.Extra("settled", "share of the requests answered well from five seconds after the trigger on")
	recovery  = ledger.Extra("recovery_s", "time until 90 % of the requests were answered well")
	critical  = ledger.Extra("critical", "share of the critical requests answered well")
	bound     = ledger.Extra("bound", "bound of requests")
	backlog   = ledger.Extra("backlog", "requests that arrive while the slow query takes")
	collected = ledger.Figure{Name: "share of the processor time in the collector, or all of it if the process was killed,", OfKilled: true,
		Value: func(r *results.Run) float64 {
			gc, known := r.Extra["gc"]
			switch {
			case r.Killed != "":
				return 100
			case !known:
				return math.NaN()
			}
			return gc
		}}
)

func of(s story, pattern string, f ledger.Figure) ledger.Term { return ledger.Of(s.key(pattern), f) }

// lasting is the case of a pattern in metastable, which is open if that was too short.
func lasting(f ledger.Figure, patterns ...string) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for _, pattern := range patterns {
			k := metastable.key(pattern)
			c := ledger.Case{Setup: pattern, Value: ledger.Of(k, f)}
			if e.ParamOf(k, "trigger") < 10 || e.ParamOf(k, "after") < 30 {
				c.Open = "The goal speaks of a trigger of ten seconds and of thirty seconds after it: run it without --quick."
			}
			out = append(out, c)
		}
		return out
	}
}

// recoveries says where the plain service was still down at the end.
func recoveries(e *ledger.Evidence) []ledger.Case {
	c := ledger.Case{Setup: "protected/unprotected", Value: of(herd, protected, recovery).Over(of(herd, unprotected, recovery))}
	runs, never := e.Runs(herd.key(unprotected)), 0
	for _, r := range runs {
		if r.Extra["never"] == 1 {
			never++
		}
	}
	if never > 0 {
		c.Remark = fmt.Sprintf("Unprotected did not recover in %d of %d repeats, for which the whole time that it was watched counts.", never, len(runs))
	}
	return []ledger.Case{c}
}

var family = ledger.Family{
	ID:    "W",
	Title: "Five ways in which a Go service goes down and stays down, each with and without protection",
	Claims: []ledger.Claim{
		{ID: "story-1", Goal: true, Title: "after ten seconds with a slow database a plain service stays down for half a minute, and a protected one is back in five seconds", Parts: []ledger.Part{
			{ID: "before", Title: "both answer at least 95 % of the requests until the database slows down", Subject: "share of the requests answered well before the trigger",
				Unit: "%", Kind: judge.Every, Rule: judge.AtLeast(95), Spread: .5, Max: 100, Cases: lasting(before, unprotected, protected)},
			{ID: "unprotected", Title: "the plain service answers less than a fifth of the requests in the thirty seconds after the database has recovered", Subject: "share of the requests answered well after the trigger",
				Unit: "%", Kind: judge.Every, Rule: judge.Below(20), Spread: .5, Max: 100, Cases: lasting(after, unprotected)},
			{ID: "protected", Title: "the protected service answers over 95 % of the requests from five seconds after the database has recovered", Subject: "share of the requests answered well from five seconds after the trigger on",
				Unit: "%", Kind: judge.Every, Rule: judge.Above(95), Spread: .5, Max: 100, Cases: lasting(settled, protected)},
		}},
		{ID: "story-2", Goal: true, Title: "twice the requests that fit into GOMEMLIMIT bury a plain service in garbage collection, and not a protected one", Parts: []ledger.Part{
			{ID: "unprotected", Title: "the plain service spends over 30 % of its processor time in the collector, or is killed", Subject: "share of the processor time in the collector, without protection",
				Unit: "%", Kind: judge.Every, Rule: judge.Above(30), Spread: .5, Max: 100, Cases: ledger.One(unprotected, of(memory, unprotected, collected))},
			{ID: "protected", Title: "the protected service lives and spends less than 10 % of its processor time in the collector", Subject: "share of the processor time in the collector, with protection",
				Unit: "%", Kind: judge.Every, Rule: judge.Below(10), Spread: .5, Max: 100, Cases: ledger.One(protected, of(memory, protected, collected))},
		}},
		{ID: "story-3", Goal: true, Title: "after a restart with an empty cache a protected service answers 90 % of the requests in at most half the time of a plain one", Parts: []ledger.Part{
			{Subject: "time until 90 % of the requests are answered, protected/unprotected", Unit: "x", Kind: judge.Every, Rule: judge.AtMost(.5), Cases: recoveries},
		}},
		{ID: "story-4", Goal: true, Title: "a query that becomes a hundred times slower fills a plain service with goroutines, and a protected one stays within its bound and answers its critical requests",
			Note: "net/http has two goroutines for a request that is being answered. The bound is of the requests that the limiters of the protected service let run and wait.",
			Parts: []ledger.Part{
				{ID: "unprotected", Title: "the plain service has at least as many goroutines as requests arrive while the slow query takes", Subject: "peak of the goroutines without protection/requests that arrive",
					Unit: "x", Kind: judge.Every, Rule: judge.AtLeast(1), Cases: ledger.One(unprotected, of(query, unprotected, ledger.Goroutines).Over(of(query, unprotected, backlog)))},
				{ID: "protected", Title: "the protected service has at most twice as many goroutines as its bound", Subject: "peak of the goroutines with protection/bound",
					Unit: "x", Kind: judge.Every, Rule: judge.AtMost(2), Cases: ledger.One(protected, of(query, protected, ledger.Goroutines).Over(of(query, protected, bound)))},
				{ID: "critical", Title: "the protected service answers at least 99 % of the critical requests within a second", Subject: "share of the critical requests answered well while the query is slow",
					Unit: "%", Kind: judge.Every, Rule: judge.AtLeast(99), Spread: .3, Max: 100, Cases: ledger.Only(
						ledger.Case{Setup: protected, Value: of(query, protected, critical)},
						ledger.Case{Setup: unprotected, Value: of(query, unprotected, critical), Beside: true},
					)},
			}},
		{ID: "story-5", Goal: true, Title: "a bounded fan-out needs at most a tenth of the memory of one without a bound", Parts: []ledger.Part{
			{Subject: "peak RSS protected/unprotected", Unit: "x", Kind: judge.Every, Rule: judge.AtMost(.1),
				Cases: ledger.One("protected/unprotected", of(fanOut, protected, ledger.PeakRSS).Over(of(fanOut, unprotected, ledger.PeakRSS)))},
		}},
	},
	Columns: []ledger.Column{
		{Key: "before", Name: "answered before the trigger, %", Format: "decimals"}, {Key: "after", Name: "after it, %", Format: "decimals"}, {Key: "settled", Name: "from 5 s after it, %", Format: "decimals"},
		{Key: "gc", Name: "processor time in the collector, %", Format: "decimals"},
		{Key: "recovery_s", Name: "until 90 % are answered, s", Format: "decimals"}, {Key: "never", Name: "still down at the end"},
		{Key: "critical", Name: "critical requests answered, %", Format: "decimals"}, {Key: "bound", Name: "bound of requests"}, {Key: "backlog", Name: "requests while the query takes"},
	},
	Method: []ledger.Note{
		{Title: "Plain and protected", Text: "The plain service is net/http and a handler that heeds its request's context, as good handlers do: when a client leaves, its query is cancelled. The protected one is the same handler behind admissionhttp with limiter.Config{}; in memory with the signal limiter.Memory at 0.7 of the limit, in query with two limiters that have a bound, in fanout with fanout.Map. Loads are open loops with Poisson arrivals of 200 clients, whatever becomes of their requests. Each repeat is judged on its own."},
		{Title: "metastable", Text: "A database with a knee: ten queries at a time run at full speed, 20 to 60 ms each, and with c of them the total falls to √(10/c). Half of its capacity is asked of it. For ten seconds everything takes it five times as long. Clients wait a second for an answer and try three times, with a random pause of up to 100 and 200 ms; in front of the protected service they have admissionhttp/client, and its budget pays for every repetition. A request counts when it was sent, and as answered if one of its tries was."},
		{Title: "memory", Text: "GOMEMLIMIT is 192 MiB, and a process is killed at a quarter more, as in a container that has little above it. A request holds 2 MiB while it computes for 1.5 ms and waits 400 ms for another service, which is never slow; as many come as would hold twice the limit. The collector's share is the runtime's own figure, of all processor time that was not idle. A process that was killed has spent all of it."},
		{Title: "herd", Text: "The database is that of metastable; the service asks it only for what is not in its cache, which is empty. 200 requests come within a tenth of a second, then 1.5 times what the database can do, by the same clients, for as many keys as it answers in four seconds. Recovered is the first tenth of a second from which on 90 % of the requests of a second are answered. A service that has not recovered at the end counts with the whole time, which favours it."},
		{Title: "query", Text: "Ten connections, for which queries wait. Every tenth request is a report, which takes 100 ms and then ten seconds (thirty with --full); every fifth is a lookup, which is critical and has to be answered within a second; the rest are lists. All wait for as long as the slow query takes. The protected service lets half as many reports run as there are connections, and twice as many of all others as a bound of the adaptive limit; as many may wait."},
		{Title: "fanout", Text: "A request asks 20 sources. Each sends 512 KiB, which stay in memory for 200 ms. The plain service asks each on a goroutine of its own. The protected one lets at most eight requests run at once, and uses fanout.Map with a budget of 64 goroutines for all of them. 400 requests a second need far more than the memory cap, at which the plain service is killed; its peak is what it had then."},
		{Title: "Side by side", Text: "metastable, herd and query mostly wait, and are told at the same time, each service in a process of its own. A run of them whose clients sent late (p99 above 50 ms) is made again, at most twice; if they are still late, it does not count."},
	},
}
