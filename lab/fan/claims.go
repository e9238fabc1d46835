package fan

import (
	"fmt"
	"strings"

	"github.com/spillway-go/spillway/lab/judge"
	"github.com/spillway-go/spillway/lab/ledger"
)

// spread is by how much a ratio of times moves between sessions.
const spread = .03

const source = "an article on goroutines for a composite user store"

// family is fan-out over a database and a cache: a composite store asks both for users
// by e-mail and organisation and merges the lists without duplicates. The database's
// failure is fatal, the cache's is ignored. Sequential, or with the cache asked in a
// goroutine that is started before the database is.
//
// The published parallel version loses answers. The claims are judged for the same
// code with one correction: it waits before it reads.
var family = ledger.Family{
	ID: "F", Title: "Fan-out over a database and a cache: one after the other, or at once", Source: source,
	Claims: []ledger.Claim{
		{
			ID: "F1", Title: "with 50 ms for each store, parallel is twice as fast", Published: "101.69 vs 50.81 ms",
			Note: "As printed it is as fast and loses answers: its return expression is evaluated before the deferred wait.",
			Parts: []ledger.Part{{
				Subject: "sequential/corrected at 50/50 ms", Unit: "x", Rule: judge.Between(1.9, 2.1), Published: []float64{101.69 / 50.81}, Spread: .01,
				Cases: ledger.Only(gain(Virtual), gain(Sleeping)),
			}},
		},
		{
			ID: "F2", Title: "with 500 and 100 µs, parallel saves about 100 µs", Published: "608 vs 512 µs",
			Note: "In an idle process on Linux a sleep of less than a millisecond takes about 1.08 ms, so this cannot be shown with time.Sleep: virtual time decides, and computing shows the cost.",
			Parts: []ledger.Part{{
				Subject: "what the corrected code saves at 500/100 µs", Unit: "µs", Rule: judge.Between(80, 120), Published: []float64{608 - 512}, Spread: 3,
				Cases: ledger.Only(saving(Virtual), saving(Computing), saving(OneProc)),
			}},
		},
		{
			ID: "F3", Title: "parallel costs 4 more allocations and some 270 bytes", Published: "5 allocations, 1,537 bytes vs 9 allocations, 1,805 bytes",
			Parts: []ledger.Part{{
				Subject: "corrected − sequential, allocations of a lookup,", Rule: judge.Between(3, 5), Published: []float64{9 - 5},
				Cases: ledger.Only(ledger.Case{Setup: allocLoad(2), Value: alloc(2, Corrected, allocs).Minus(alloc(2, Sequential, allocs))}),
			}},
		},
		{
			ID: "F4", Title: "below a millisecond sequential is the right default", Published: "a rule, no figure",
			Note:  "Two times that differ by less than 2 % are a tie, which is no gain. Where parallel wins at every duration that was tried, or at none, the shortest or the longest of these stands for the break-even, which then lies below or above it. A database and one cache were published, so two sources decide.",
			Parts: []ledger.Part{{Subject: "break-even for each branch", Unit: "µs", Rule: judge.AtLeast(pays), Spread: 50, Cases: breakEvens}},
		},
		{
			ID: "fanout-1", Goal: true, Title: "without being told a number it is as fast as the better of sequential and parallel, and notices when that changes",
			Parts: []ledger.Part{
				{
					ID: "mean", Title: "over all cells of the grid it takes at most 1.05 of the better's time", Subject: "the mean of our time/the better's over all cells",
					Unit: "x", Rule: judge.AtMost(1.05), Spread: spread, Cases: overGrid(mean),
				},
				{
					ID: "worst", Title: "and at most 1.10 in the worst cell", Subject: "our time/the better's in the worst cell",
					Unit: "x", Rule: judge.AtMost(1.10), Spread: spread, Cases: overGrid(func(ratios []ledger.Term) ledger.Term { return ledger.Best(ratios...) }),
				},
				peak("to-parallel", "when work becomes slow it is parallel within 64 calls", "calls until it was parallel", "", 64, changed, "to_parallel"),
				peak("to-sequential", "when work becomes quick it is sequential within 64 calls", "calls until it was sequential", "", 64, changed, "to_sequential"),
			},
		},
		{
			ID: "fanout-2", Goal: true, Title: "it costs what sequential code costs, and nests within a bound",
			Parts: []ledger.Part{
				{
					ID: "allocs", Title: "up to 8 branches it allocates no more often than sequential code", Subject: "allocations beyond the sequential lookup's",
					Kind: judge.Never, Rule: judge.AtMost(0), Cases: allocCases(func(n int, name string) ledger.Term {
						return alloc(n, name, allocs).Minus(alloc(n, Sequential, allocs))
					}),
				},
				{
					ID: "bytes", Title: "nor more bytes", Subject: "our bytes/the sequential lookup's", Unit: "x",
					Rule: judge.AtMost(1.01), Cases: allocCases(func(n int, name string) ledger.Term { return alloc(n, name, bytes).Over(alloc(n, Sequential, bytes)) }),
				},
				peak("goroutines", "nested 16 × 16 × 16 it needs at most 64 goroutines", "goroutines beside the caller's", "", 64, nest(Spillway), "goroutines"),
				{
					ID: "nested", Title: "and at most twice the time of unbounded goroutines", Subject: "our time/that of a WaitGroup at every level", Unit: "x",
					Rule: judge.AtMost(2), Spread: spread, Cases: ledger.Only(ledger.Case{Setup: nestSetup, Value: ledger.Of(nest(Spillway), ns).Over(ledger.Of(nest(Corrected), ns))}),
				},
			},
		},
		{
			ID: "fanout-4", Goal: true, Title: "where one attempt in a hundred straggles, hedging cuts p99 to an eighth and hardly adds load",
			Parts: []ledger.Part{
				{
					ID: "p99", Title: "hedging cuts p99 to an eighth", Subject: "p99 not hedged/hedged", Unit: "x", Rule: judge.AtLeast(8), Spread: spread,
					Cases: ledger.Only(ledger.Case{Setup: Virtual, Value: ledger.Of(notHedged, ledger.Extra("p99", "p99")).Over(ledger.Of(hedged, ledger.Extra("p99", "p99")))}),
				},
				peak("load", "at no more than 2 % of extra load", "second attempts of the first", "%", 2, hedged, "extra"),
				peak("outage", "and 5 % in an outage", "second attempts of the first in an outage", "%", 5, hedged, "outage"),
				{
					ID: "originals", Title: "no first attempt is cancelled unless the second has won", Subject: "first attempts that were cancelled before the second had won",
					Kind: judge.Never, Rule: judge.Exactly(0), Cases: ledger.Only(ledger.Case{Setup: Virtual, Value: ledger.Of(hedged, ledger.Extra("cancelled", "first attempts cancelled"))}),
				},
			},
		},
	},
	Recommendations: []ledger.Recommendation{{
		For: "calls that take less than a millisecond", Use: "sequential, unless they are a meaningful share of the request", RestsOn: []string{"F2", "F4"},
	}},
	Sources: []ledger.Source{{Name: source, What: "whose code is rendered here from its description"}},
	Columns: []ledger.Column{
		{Key: "ns", Name: "time for a lookup", Format: "nanos"}, {Key: "lost", Name: "of the caches' answers lost", Format: "percent"},
		{Key: "allocs", Name: "allocations"}, {Key: "bytes", Name: "bytes"}, {Key: "free", Name: "processors available", Format: "decimals"},
		{Key: "behind", Name: "Spillway's time/this one's", Format: "ratio"}, {Key: "goroutines", Name: "goroutines beside the caller"},
		{Key: "break_even", Name: "break-even for each branch", Format: "micros"},
		{Key: "to_parallel", Name: "calls until parallel"}, {Key: "to_sequential", Name: "calls until sequential"},
		{Key: "p50", Name: "p50", Format: "nanos"}, {Key: "p99", Name: "p99", Format: "nanos"}, {Key: "extra", Name: "second attempts, %", Format: "decimals"},
		{Key: "outage", Name: "in an outage, %", Format: "decimals"}, {Key: "cancelled", Name: "first attempts cancelled too early"},
	},
	Behind: "behind",
	Grid:   gridPrefix,
	Method: []ledger.Note{
		{Title: "What is compared", Text: "A database and n − 1 caches are asked for users; each cache has one that no other source has, so that a lost answer is noticed. sequential asks one after the other. as-printed asks the caches in goroutines and reads what they answered before it has waited for them. corrected waits first, and is otherwise the same: it cancels no branch and reports no error of a cache. errgroup and conc are used in their usual way. spillway is configured only with which branch is required. What it does beyond the others (errors with names, panics, cancellation, measuring) is in its figures."},
		{Title: "Virtual time", Text: "Where sources wait, the clock is that of testing/synctest: it stands still while any goroutine can run and jumps when all wait. Times are exact and computing is free, so that what goroutines cost does not show. The lab runs this as a test binary in a process of its own."},
		{Title: "Real time", Text: "Where sources compute, they burn a calibrated number of turns, touching no memory. \"Waiting that yields\" offers its processor to others until its time is over, which shows the cost of goroutines for waits that are too short for a timer. time.Sleep takes more than a millisecond on many systems, whatever it is asked for, and is used at 50 ms only."},
		{Title: "A free processor", Text: "In each round, one goroutine and then two compute for some milliseconds, as if they were contestants. Only if the two got 1.6 processors does the round count for claims about a free one. \"One processor\" is GOMAXPROCS=1: none is ever free."},
		{Title: "In turns", Text: "The contestants of one table take turns in one process, in a new order each round; a contestant lives through all rounds, so that one that learns has learned. Ratios are taken within a round, of which the median counts; the verdict's interval is over repeats. Spillway and corrected play twice: what they differ from themselves is the noise floor, for failures as for successes."},
		{Title: "Break-even", Text: "The duration of a branch from which corrected is faster than sequential for good, between two durations of the grid on logarithmic scales, in each repeat."},
		{Title: "The grid", Text: "Branches of equal length. The better is the contestant whose median time over the session is the shortest in that cell, so that the noise of each repeat does not change the choice; the worst cell is chosen likewise. Cells whose sequential lookup would take more than 40 ms (with --grid 100 ms) are not run in real time: parallel has won long before."},
		{Title: "Allocations", Text: "Counted with sources that do nothing, under a context that can be cancelled. spillway-parallel is configured to be parallel, as it is by itself if branches wait; spillway-borrowed also with the option that no branch keeps its context."},
		{Title: "Hedging", Text: "Two sources answer in 10 ms ± 20 %; one attempt in a hundred takes 1 s. In the outage all attempts take 1 s and fail."},
	},
}

var (
	ns     = ledger.Extra("ns", "time")
	allocs = ledger.Extra("allocs", "allocations")
	bytes  = ledger.Extra("bytes", "bytes")
)

// setup names a kind of work as a claim's set-up.
func setup(kind string) string {
	if kind == Computing {
		return "computing, a processor free"
	}
	return kind
}

// lookup is the time of a contestant at a published size, with one cache.
func lookup(kind string, size int, name string) ledger.Term {
	t := Published[size]
	t.Sources = 2
	return ledger.Of(ledger.Key{Setup: kind, Load: t.named().Load, Pattern: name}, timeOf(kind))
}

func gain(kind string) ledger.Case {
	return ledger.Case{Setup: kind, Value: lookup(kind, 0, Sequential).Over(lookup(kind, 0, Corrected))}
}

func saving(kind string) ledger.Case {
	return ledger.Case{Setup: setup(kind), Beside: kind != Virtual, Value: lookup(kind, 1, Sequential).Minus(lookup(kind, 1, Corrected)).Times(1e-3)}
}

func alloc(n int, name string, f ledger.Figure) ledger.Term {
	return ledger.Of(ledger.Key{Setup: allocSetup, Load: allocLoad(n), Pattern: name}, f)
}

func allocCases(value func(n int, name string) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	var out []ledger.Case
	for _, n := range []int{2, 8} {
		for _, name := range []string{Spillway, InParallel, Borrowed} {
			out = append(out, ledger.Case{Setup: name + ", " + allocLoad(n), Value: value(n, name)})
		}
	}
	return ledger.Only(out...)
}

func nest(name string) ledger.Key {
	return ledger.Key{Setup: nestSetup, Load: nestLoad, Pattern: name}
}

// peak is a part about a figure that no repeat may exceed.
func peak(id, title, subject, unit string, bound float64, k ledger.Key, figure string) ledger.Part {
	return ledger.Part{
		ID: id, Title: title, Subject: subject, Unit: unit, Kind: judge.Every, Rule: judge.AtMost(bound),
		Cases: ledger.Only(ledger.Case{Setup: k.Load, Value: ledger.Of(k, ledger.Extra(figure, subject))}),
	}
}

// breakEvens are the set-ups of the grid that have one.
func breakEvens(e *ledger.Evidence) (out []ledger.Case) {
	for _, kind := range kinds[:3] { // in virtual time computing is free
		name := strings.Replace(timeOf(kind).Name, "time", "break-even", 1)
		two := sized(evenPrefix, kind, 2)
		keys := e.Keys(func(k ledger.Key) bool { return strings.HasPrefix(k.Setup, evenPrefix+kind+", n") })
		if len(keys) == 0 {
			keys = []ledger.Key{{Setup: two, Load: evenLoad, Pattern: Corrected}}
		}
		for _, k := range keys {
			words := setup(kind) + strings.TrimPrefix(k.Setup, evenPrefix+kind)
			out = append(out, ledger.Case{Setup: words, Beside: k.Setup != two, Value: ledger.Of(k, ledger.Extra("break_even", name))})
		}
	}
	return out
}

// overGrid makes one value, in each kind of work, of our time over the better's in all
// cells of the grid.
func overGrid(of func(ratios []ledger.Term) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for _, kind := range kinds {
			var ratios []ledger.Term
			for _, k := range e.Keys(func(k ledger.Key) bool {
				return k.Pattern == Spillway && strings.HasPrefix(k.Setup, gridPrefix+kind+", n")
			}) {
				var rivals []ledger.Term
				for _, name := range []string{Sequential, Corrected, ErrGroup, Conc} {
					if other := (ledger.Key{Setup: k.Setup, Load: k.Load, Pattern: name}); e.Has(other) {
						rivals = append(rivals, ledger.Of(other, ns))
					}
				}
				if len(rivals) > 0 {
					ratios = append(ratios, ledger.Of(k, ns).Over(ledger.Least(rivals...)))
				}
			}
			if len(ratios) > 0 {
				out = append(out, ledger.Case{Setup: fmt.Sprintf("%s, %d cells", kind, len(ratios)), Value: of(ratios)})
			}
		}
		return out
	}
}

func mean(ratios []ledger.Term) ledger.Term {
	sum := ratios[0]
	for _, r := range ratios[1:] {
		sum = sum.Plus(r)
	}
	return sum.Times(1 / float64(len(ratios)))
}
