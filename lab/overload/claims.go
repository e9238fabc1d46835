package overload

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/load/judge"
)

const setup = "patient API over HTTP and SQLite"

func key(load, name string) ledger.Key { return ledger.Key{Setup: setup, Load: load, Pattern: name} }

// The figures. A contestant that was killed has answered what it had until then, of the
// whole measurement.
var (
	goodput      = ledger.Figure{Name: "goodput", OfKilled: true, Value: ledger.Goodput.Value}
	capacity     = ledger.Extra("capacity", "capacity")
	criticalSent = ledger.Extra("critical_offered", "critical requests a second")
	criticalOK   = ledger.Extra("critical_ok", "critical requests answered well a second")
	offered      = ledger.Figure{Name: "requests offered a second", Value: func(r *results.Run) float64 {
		if r.Offered == 0 {
			return math.NaN()
		}
		return float64(r.Offered) / r.Elapsed
	}}
)

var family = ledger.Family{
	ID:    "overload",
	Title: "A patient API is offered up to ten times what it can do, behind each way of bounding it",
	Claims: []ledger.Claim{
		{ID: "overload-1", Goal: true, Title: "without a number it answers at least 90 % of the best that any contestant answered under any load",
			Note: "What was possible is the best median goodput of any contestant under any load, or what was offered, if that is less.",
			Parts: []ledger.Part{{Subject: "goodput of Spillway/what was possible", Unit: "x", Rule: judge.AtLeast(0.9), Spread: 0.03,
				Cases: atEach(Names(), func(e *ledger.Evidence, load string) ledger.Term {
					return ledger.Of(key(load, Spillway), goodput).Over(ledger.Smallest(ledger.Best(goodputs(e, all)...), ledger.Of(key(load, Spillway), offered)))
				})}}},
		{ID: "overload-2", Goal: true, Title: "at least 99 % of the critical requests are answered well, as far as they fit",
			Note: "A fifth of the requests is critical. At ten times the capacity that alone is twice what the service can do, at five times exactly as much; there the share is of the capacity.",
			Parts: []ledger.Part{{Subject: "critical requests answered well", Unit: "%", Rule: judge.AtLeast(99), Spread: 0.3, Max: 100,
				Cases: atEach(nil, func(_ *ledger.Evidence, load string) ledger.Term {
					of := func(f ledger.Figure) ledger.Term { return ledger.Of(key(load, Spillway), f) }
					fit := ledger.Smallest(of(criticalSent), of(capacity))
					return ledger.Smallest(of(criticalOK).Over(fit).Times(100), ledger.Const(100))
				})}}},
		{ID: "overload-3", Goal: true, Title: "no contestant answers over 5 % more",
			Note: "Three of the rivals were told the size of the database, which an operator has to guess; one of these is our own worker pool.",
			Parts: []ledger.Part{{Subject: "goodput of the best rival/Spillway", Unit: "x", Rule: judge.AtMost(1.05), Spread: 0.03,
				Cases: atEach(Names(), func(e *ledger.Evidence, load string) ledger.Term {
					rivals := goodputs(e, func(k ledger.Key) bool { return k.Load == load && k.Pattern != Spillway })
					if len(rivals) == 0 {
						rivals = []ledger.Term{ledger.Of(key(load, SemaphoreTry), goodput)} // which is said to be missing
					}
					return ledger.Best(rivals...).Over(ledger.Of(key(load, Spillway), goodput))
				})}}},
	},
	Method: []ledger.Note{
		{Title: "What is scarce", Text: "A database with a knee, in front of SQLite: ten lookups at a time run at full speed, 20 to 60 ms each. Beyond that they share it, and the sharing costs: with c of them running the total falls to √(10/c), so that forty do half of what ten do. It refuses nothing and reports nothing. A caller that leaves takes its lookup along."},
		{Title: "The load", Text: "An open loop with Poisson arrivals: clients that do not wait for each other. The capacity is measured first, in a closed loop around the database's slots. Every request waits a second and says so in a header that becomes the context's deadline; every fifth is critical and says so too. Latency counts from the intended start. Each measurement follows a warm-up under the same load. One whose clients sent late (p99 above 50 ms), because the machine was busy elsewhere, is made again, at most twice; if they are still late, it does not count."},
		{Title: "What the contestants know", Text: "semaphore, semaphore-try and workerpool were given the size of the database, which an operator has to guess; semaphore-4x is the same guess, four times off. failsafe and spillway have no such number. semaphore waits as long as the deadline allows, first come, first served; semaphore-try refuses at once. workerpool and spillway are ours."},
		{Title: "Side by side", Text: "As many contestants run at the same time, each in its own process, as the processors bear: on two processors all of them up to one and a half times the capacity, six at twice it, three at five times it, and one at ten times it. Nearly all of a lookup is waiting, so that they do not compete. Spillway runs twice under every load: its difference from itself is the noise floor."},
	},
}

// atEach is a case for every load, the lowest first: those of the goals, and others that
// were run. One is open if its load was not run, or not with every contestant needed.
func atEach(needed []string, value func(e *ledger.Evidence, load string) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		loads := slices.Clone(goalLoads)
		for _, k := range e.Keys(all) {
			x, _ := strconv.ParseFloat(strings.TrimSuffix(k.Load, "x"), 64)
			loads = append(loads, x)
		}
		slices.Sort(loads)
		for _, x := range slices.Compact(loads) {
			load := service.Multiple(x)
			c := ledger.Case{Setup: "at " + load, Value: value(e, load)}
			switch {
			case !e.Has(key(load, Spillway)):
				c.Open = "The goal speaks of loads up to ten times the capacity: run it without --load and with spillway."
			case slices.ContainsFunc(needed, func(name string) bool { return !e.Has(key(load, name)) }):
				c.Open = "The goal compares with every contestant: run it without --contestant."
			}
			out = append(out, c)
		}
		return out
	}
}

// goalLoads are those that the goals speak of.
var goalLoads = []float64{0.5, 0.9, 1.5, 2, 5, 10}

func all(ledger.Key) bool { return true }

func goodputs(e *ledger.Evidence, ok func(ledger.Key) bool) (out []ledger.Term) {
	for _, k := range e.Keys(ok) {
		out = append(out, ledger.Of(k, goodput))
	}
	return out
}
