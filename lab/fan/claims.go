package fan

import (
	"fmt"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/load/judge"
)

const source = "an article on goroutines for a composite user store"

// family is fan-out over a database and a cache: a composite store asks both for users
// by e-mail and organisation and merges the lists without duplicates. The database's
// failure is fatal, the cache's is ignored. Sequential, or with the cache asked in a
// goroutine that is started before the database is.
//
// The published parallel version loses answers. The claims are judged for the same
// code with one correction: it waits before it reads.
var family = ledger.Family{
	ID: "F", Title: "A database and caches are asked for the same users, one after the other or at once", Source: source,
	Claims: []ledger.Claim{
		{ID: "F1", Title: "with 50 ms for each store, parallel is twice as fast", Published: "101.69 vs 50.81 ms",
			Note: "As printed it is as fast and loses answers: its return expression is evaluated before the deferred wait. " + arithmetic,
			Parts: []ledger.Part{{Subject: "sequential/corrected at 50/50 ms", Unit: "x", Rule: judge.Between(1.9, 2.1), Spread: .01, Published: []float64{101.69 / 50.81},
				Cases: ledger.Only(corrects(Sleeping, 0, ledger.Term.Over), corrects(Virtual, 0, ledger.Term.Over))}}},
		{ID: "F2", Title: "with 500 and 100 µs, parallel saves about 100 µs", Published: "608 vs 512 µs",
			Note: "In an idle process on Linux a sleep of less than a millisecond takes about 1.08 ms, so this cannot be shown with time.Sleep: sources that compute decide, while a second processor is free. " + arithmetic,
			Parts: []ledger.Part{{Subject: "what the corrected code saves at 500/100 µs", Unit: "µs", Rule: judge.Between(80, 120), Spread: 3, Min: -1000, Max: mostSaved, Published: []float64{608 - 512},
				Cases: ledger.Only(saving(Computing), saving(OneProc), saving(Virtual))}}},
		{ID: "F3", Title: "parallel costs 4 more allocations and some 270 bytes", Published: "5 allocations, 1,537 bytes vs 9 allocations, 1,805 bytes",
			Note: "The published sources sleep, and a goroutine that sleeps for the first time allocates its timer. Sources that do nothing stand beside.",
			Parts: []ledger.Part{
				{ID: "allocations", Title: "parallel allocates four times more a lookup", Subject: "corrected − sequential, allocations of a lookup,", Rule: judge.Between(3, 5), Published: []float64{9 - 5},
					Cases: costs(allocs)},
				{ID: "bytes", Title: "parallel allocates some 270 bytes more a lookup", Subject: "corrected − sequential, bytes of a lookup,", Unit: "B", Rule: judge.Between(200, 340), Published: []float64{1805 - 1537},
					Cases: costs(bytes)},
			}},
		{ID: "F4", Title: "below a millisecond sequential is the right default", Published: "a rule, no figure",
			Note: "The source asks whether the saving is a meaningful share of the request. By construction it is not below a millisecond: no lookup of two saves more than its shorter branch, which of a request of 10 ms is 1 % for 100 µs and 5 % for 500 µs. At 50 ms it is. These shares stand beside, as does the break-even of this machine. What is left to judge is whether goroutines gain anything where no processor is free.",
			Parts: []ledger.Part{
				{ID: "busy", Title: "with no free processor, parallel gains nothing below a millisecond", Subject: "corrected/sequential, no processor free,", Unit: "x", Rule: judge.AtLeast(won), Spread: .01, Cases: ledger.Only(busy(1), busy(2))},
				{ID: "quick", Title: "by construction, below a millisecond parallel saves less than 5 % of a request of 10 ms", Subject: "what the corrected code saves of a request of 10 ms", Unit: "%", Rule: judge.Below(5), Spread: .03, Beside: true, Cases: quick},
				{ID: "slow", Title: "by construction, at 50 ms parallel saves more than 25 % of the request", Subject: "what the corrected code saves of a request with 10 ms of other work", Unit: "%", Rule: judge.Above(25), Spread: .5, Beside: true, Cases: slow},
			}},
		{ID: "F5", Title: "two goroutines may write the answers without a lock, because of wg.Wait()", Published: "“safe here because of wg.Wait()”, and the code as printed",
			Note:  "The deferred wait comes after the answers were read. A slice is three words: who reads its length before its pointer is there ends the process. A process that ended counts as one.",
			Parts: []ledger.Part{{Subject: "answers lost, or processes ended, in 100,000 calls", Kind: judge.Never, Rule: judge.Exactly(0), Cases: unlocked}}},
		{ID: "fanout-1", Goal: true, Title: "without being told a number it is as fast as the better of sequential and parallel, and notices when that changes",
			Parts: []ledger.Part{
				ledger.AtMost(1.05, "mean", "over all cells of the grid it takes at most 1.05 of the better's time", "the mean of our time/the better's over all cells", overGrid(mean)),
				ledger.AtMost(1.10, "worst", "in the worst cell it takes at most 1.10 of the better's time", "our time/the better's in the worst cell", overGrid(ledger.Best)),
				each(judge.Every, "", judge.AtMost(64), "to-parallel", "when work becomes slow it is parallel within 64 calls", "calls until it was parallel", changed, "to_parallel"),
				each(judge.Every, "", judge.AtMost(64), "to-sequential", "when work becomes quick it is sequential within 64 calls", "calls until it was sequential", changed, "to_sequential"),
			}},
		{ID: "fanout-2", Goal: true, Title: "it costs what sequential code costs, and nests within a bound",
			Parts: []ledger.Part{
				{ID: "allocs", Title: "up to 8 branches it allocates no more often than sequential code", Subject: "allocations beyond the sequential lookup's",
					Kind: judge.Never, Rule: judge.AtMost(0), Cases: ours(allocs, ledger.Term.Minus)},
				{ID: "bytes", Title: "up to 8 branches it allocates no more bytes than sequential code", Subject: "our bytes/the sequential lookup's", Unit: "x", Rule: judge.AtMost(1.01), Cases: ours(bytes, ledger.Term.Over)},
				each(judge.Every, "", judge.AtMost(64), "goroutines", "nested 16 × 16 × 16 it needs at most 64 goroutines", "goroutines beside the caller's", nest(Spillway), "goroutines"),
				ledger.AtMost(2, "nested", "nested 16 × 16 × 16 it takes at most twice the time of unbounded goroutines", "our time/that of a WaitGroup at every level",
					ledger.One(nestSetup, ledger.Of(nest(Spillway), ns).Over(ledger.Of(nest(Corrected), ns)))),
			}},
		{ID: "fanout-4", Goal: true, Title: "where one attempt in a hundred straggles, hedging cuts p99 to an eighth and hardly adds load",
			Parts: []ledger.Part{
				{ID: "p99", Title: "hedging cuts p99 to an eighth", Subject: "p99 not hedged/hedged", Unit: "x", Rule: judge.AtLeast(8), Spread: .03,
					Cases: ledger.One(hedgeSetup, ledger.Of(notHedged, p99).Over(ledger.Of(hedged, p99)))},
				each(judge.Every, "%", judge.AtMost(2), "load", "hedging adds at most 2 % of load", "second attempts of the first", hedged, "extra"),
				each(judge.Every, "%", judge.AtMost(5), "outage", "hedging adds at most 5 % of load in an outage", "second attempts of the first in an outage", hedged, "outage"),
				each(judge.Never, "", judge.Exactly(0), "originals", "no first attempt is cancelled unless the second has won", "first attempts that were cancelled before the second had won", hedged, "cancelled"),
			}},
	},
	Sources: []ledger.Source{{Name: source, What: "whose code is rendered here from its description"}},
	Columns: []ledger.Column{
		{Key: "ns", Name: "time for a lookup", Format: "nanos"}, {Key: "lost", Name: "of the caches' answers lost", Format: "percent"}, {Key: "harmed", Name: "answers lost, or processes ended"},
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
		{Title: "Break-even", Text: "The duration of a branch from which corrected is faster than sequential for good, by more than 2 %, between two durations of the grid on logarithmic scales, in each repeat. Where it is faster at every duration that was tried, or at none, there is no figure."},
		{Title: "The grid", Text: "Branches of equal length. The better is the contestant whose median time over the session is the shortest in that cell, so that the noise of each repeat does not change the choice; the worst cell is chosen likewise. Cells whose sequential lookup would take more than 40 ms (with --grid 100 ms) are not run in real time: parallel has won long before."},
		{Title: "Allocations", Text: "Counted with sources that do nothing, under a context that can be cancelled, and for the published code also with sources that sleep for 100 µs: a goroutine that sleeps for the first time allocates its timer. spillway-parallel is configured to be parallel, as it is by itself if branches wait."},
		{Title: "Nested", Text: "Lookups of sixteen sources, each of which is such a lookup, and again: 4,096 sources that compute 5 µs. Spillway's goroutines come from one bulkhead of 64."},
		{Title: "Hedging", Text: "Two sources answer in 10 ms ± 20 %; one attempt in a hundred takes 1 s. In the outage all attempts take 1 s and fail."},
	},
}

// each is a part about a figure that every repeat has to have within the rule.
func each(kind judge.Kind, unit string, rule judge.Rule, id, title, subject string, k ledger.Key, figure string) ledger.Part {
	value := ledger.Of(k, ledger.Extra(figure, subject))
	return ledger.Part{ID: id, Title: title, Subject: subject, Unit: unit, Kind: kind, Rule: rule, Cases: ledger.One(k.Setup, value)}
}

var (
	ns     = ledger.Extra("ns", "time")
	allocs = ledger.Extra("allocs", "allocations")
	bytes  = ledger.Extra("bytes", "bytes")
	p99    = ledger.Extra("p99", "p99")
)

func nest(name string) ledger.Key { return ledger.Key{Setup: nestSetup, Load: nestLoad, Pattern: name} }

// setup names a kind of work as a claim's set-up.
func setup(kind string) string {
	if kind == Computing {
		return "computing, a processor free"
	}
	return kind
}

type compare = func(a, b ledger.Term) ledger.Term

// arithmetic is said of what virtual time shows.
const arithmetic = "In virtual time waiting is exact and computing free, so that the figure is arithmetic: it stands beside."

// published is the cell of sequential at a published size, with one cache.
func published(kind string, size int) ledger.Key {
	t := Published[size]
	t.Sources = 2
	return ledger.Key{Setup: kind, Load: t.named().Load, Pattern: Sequential}
}

// against compares a cell of sequential with the same lookup by corrected.
func against(kind string, k ledger.Key, by compare) ledger.Term {
	return by(ledger.Of(k, timeOf(kind)), ledger.Of(k.By(Corrected), timeOf(kind)))
}

func corrects(kind string, size int, by compare) ledger.Case {
	return ledger.Case{Setup: setup(kind), Value: against(kind, published(kind, size), by), Beside: kind == Virtual || kind == OneProc}
}

// Parallel saves the time of the shorter branch at most. That is all without noise; branches that compute
// take longer in a repeat in which something else runs.
const (
	shorterBranch = 100 // µs
	mostSaved     = shorterBranch * 1.2
)

func saving(kind string) ledger.Case {
	c := corrects(kind, 1, ledger.Term.Minus)
	c.Value = c.Value.Times(1e-3) // in µs
	if kind == Virtual {
		c.Max = shorterBranch
	}
	return c
}

const request = 10 * time.Millisecond // of which the source takes a saving as a share

// busy is a published size below a millisecond with one processor.
func busy(size int) ledger.Case {
	k := published(OneProc, size)
	return ledger.Case{Setup: setup(OneProc) + ", " + k.Load, Value: ledger.Of(k.By(Corrected), ns).Over(ledger.Of(k, ns))}
}

// quick are the published sizes below a millisecond, and the equal branches of the grid.
func quick(e *ledger.Evidence) (out []ledger.Case) {
	all := []ledger.Key{published(Computing, 1), published(Computing, 2)}
	all = append(all, e.Keys(func(k ledger.Key) bool {
		return k.Setup == sized(gridPrefix, Computing, 2) && k.Pattern == Sequential
	})...)
	for _, k := range all {
		share := against(Computing, k, ledger.Term.Minus).Times(100 / float64(request))
		out = append(out, ledger.Case{Setup: setup(Computing) + ", " + k.Load, Value: share})
	}
	return out
}

// slow is the published size above a millisecond.
func slow(*ledger.Evidence) []ledger.Case {
	k := published(Sleeping, 0)
	whole := ledger.Of(k, timeOf(Sleeping)).Plus(ledger.Const(float64(request)))
	return []ledger.Case{{Setup: setup(Sleeping), Value: against(Sleeping, k, ledger.Term.Minus).Over(whole).Times(100)}}
}

// costs compares what the corrected code allocates with what sequential code does, with sources
// that sleep, as the published ones do, and beside them with sources that do nothing.
func costs(f ledger.Figure) func(*ledger.Evidence) []ledger.Case {
	var out []ledger.Case
	for _, setup := range []string{sleepSetup, allocSetup} {
		k := ledger.Key{Setup: setup, Load: allocLoad(2), Pattern: Corrected}
		out = append(out, ledger.Case{Setup: setup + ", " + k.Load, Beside: setup == allocSetup, Value: ledger.Of(k, f).Minus(ledger.Of(k.By(Sequential), f))})
	}
	return ledger.Only(out...)
}

// unlocked are the calls of the code as printed.
func unlocked(*ledger.Evidence) (out []ledger.Case) {
	for _, k := range printed {
		out = append(out, ledger.Case{Setup: k.Load, Value: ledger.Of(k, ledger.Extra("harmed", "answers lost, or processes ended"))})
	}
	return out
}

// beyond compares what contestants allocate with what sequential code does.
func beyond(f ledger.Figure, by compare, sources []int, names ...string) func(*ledger.Evidence) []ledger.Case {
	var out []ledger.Case
	for _, n := range sources {
		for _, name := range names {
			k := ledger.Key{Setup: allocSetup, Load: allocLoad(n), Pattern: name}
			out = append(out, ledger.Case{Setup: name + ", " + k.Load, Value: by(ledger.Of(k, f), ledger.Of(k.By(Sequential), f))})
		}
	}
	return ledger.Only(out...)
}

func ours(f ledger.Figure, by compare) func(*ledger.Evidence) []ledger.Case {
	return beyond(f, by, []int{2, 8}, Spillway, InParallel)
}

// overGrid makes one value, in each kind of work, of our time over the better's in all
// cells of the grid.
func overGrid(of func(ratios ...ledger.Term) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for _, kind := range kinds {
			var ratios []ledger.Term
			for _, us := range e.Keys(func(k ledger.Key) bool {
				return k.Pattern == Spillway && strings.HasPrefix(k.Setup, gridPrefix+kind+", n")
			}) {
				rivals := e.All(ns, func(k ledger.Key) bool { return k.By(Spillway) == us && k != us })
				if len(rivals) > 0 {
					ratios = append(ratios, ledger.Of(us, ns).Over(ledger.Least(rivals...)))
				}
			}
			if len(ratios) > 0 {
				out = append(out, ledger.Case{Setup: fmt.Sprintf("%s, %d cells", kind, len(ratios)), Value: of(ratios...)})
			}
		}
		return out
	}
}

func mean(ratios ...ledger.Term) ledger.Term {
	sum := ratios[0]
	for _, r := range ratios[1:] {
		sum = sum.Plus(r)
	}
	return sum.Times(1 / float64(len(ratios)))
}
