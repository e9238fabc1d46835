package pools

import (
	"fmt"
	"slices"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/load/judge"
)

var (
	ns     = ledger.Extra("ns", "time for each")
	allocs = ledger.Extra("allocs", "allocations for each")
)

// noop is Spillway's time for no-op jobs of one producer.
func noop(workers int) ledger.Term {
	return ledger.Of(ledger.Key{Setup: "no-op jobs", Load: boutLoad(1, workers), Pattern: Spillway}, ns)
}

// The rivals. A goal that speaks of the best of them needs them all.
var (
	peers     = without(Submitters, Spillway)
	libraries = without(peers, byHand...)
)

func without(names []string, some ...string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(some, name) })
}

var family = ledger.Family{
	ID: "pools", Title: "Worker pools, a bare channel and semaphores do the same jobs, and Spillway's pool is compared with the best of them",
	Claims: []ledger.Claim{
		{ID: "pool-1", Goal: true, Title: "handing over a job by 1,000 producers costs half of what the best peer takes, and no allocation", Parts: []ledger.Part{
			ledger.AtMost(.5, "peer", "no-op jobs of 1,000 producers take at most half the time of the best peer, the bare channel included", "our time/the best peer's", submitted("no-op jobs", crowd, all, over(ns, peers...))),
			ledger.AtMost(.15, "library", "no-op jobs of 1,000 producers take at most 0.15 of the best library's time", "our time/the best library's", submitted("no-op jobs", crowd, all, over(ns, libraries...))),
			allocates("submissions", "no-op jobs", crowd, all),
		}},
		{ID: "pool-2", Goal: true, Title: "handing over a job by one producer costs less than the best peer takes, with few workers and with many", Parts: []ledger.Part{
			ledger.AtMost(.8, "peer", "no-op jobs of one producer take at most 0.8 of the best peer's time", "our time/the best peer's", submitted("no-op jobs", one, few, over(ns, peers...))),
			ledger.AtMost(.4, "wide", "to 1,000 workers no-op jobs of one producer take at most 0.4 of the best peer's time", "our time/the best peer's", submitted("no-op jobs", one, many, over(ns, peers...))),
			ledger.AtMost(1.15, "flat", "1,000 workers cost one producer at most 15 % more than 2", "our time with 1,000 workers/with 2", ledger.One("1 producer", noop(1000).Over(noop(2)))),
		}},
		{ID: "pool-3", Goal: true, Title: "a counted refusal costs what a bare try-send costs, and no allocation", Note: "The bare try-send counts nothing.", Parts: []ledger.Part{
			ledger.AtMost(1.25, "channel", "a counted refusal takes at most 1.25 of a bare try-send that counts nothing", "our refusal/a try-send", submitted(setupRefuse, oneOrCrowd, all, over(ns, Channel))),
			ledger.AtMost(.4, "ants", "a counted refusal takes at most 0.4 of one by ants", "our refusal/one by ants", submitted(setupRefuse, oneOrCrowd, all, over(ns, Ants))),
			{ID: "time", Title: "a counted refusal takes at most 10 ns, which depends on the machine more than the ratios do", Subject: "the time of a refusal", Unit: "ns", Rule: judge.AtMost(10), Spread: .5,
				Cases: submitted(setupRefuse, oneOrCrowd, all, ours(ns))},
			allocates("refusals", setupRefuse, oneOrCrowd, all),
		}},
		{ID: "pool-4", Goal: true, Title: "a typed result costs what a result over a reused channel costs, and no allocation beyond the caller's closure", Parts: []ledger.Part{
			ledger.AtMost(1.15, "channel", "a typed result takes at most 1.15 of one over a channel that its client uses again", "our call/one over a channel", submitted(setupCall, oneProcsCrowd, all, over(ns, Channel))),
			ledger.AtMost(.55, "tunny", "a typed result takes at most 0.55 of one by tunny", "our call/one by tunny", submitted(setupCall, oneProcsCrowd, all, over(ns, Tunny))),
			ledger.AtMost(.15, "pond", "a typed result takes at most 0.15 of a future of pond", "our call/a future of pond", submitted(setupCall, oneProcsCrowd, all, over(ns, Pond))),
			allocates("calls", setupCall, oneProcsCrowd, all),
		}},
		{ID: "pool-5", Goal: true, Title: "jobs that compute take no longer than with the best peer", Parts: []ledger.Part{
			ledger.AtMost(1.05, "short", "1 µs jobs take at most 1.05 of the best peer's time", "our time/the best peer's", submitted("1 µs jobs", oneOrCrowd, all, over(ns, peers...))),
			ledger.AtMost(1.02, "long", "20 µs jobs take at most 1.02 of the best peer's time", "our time/the best peer's", submitted("20 µs jobs", oneOrCrowd, all, over(ns, peers...))),
		}},
		{ID: "pool-6", Goal: true, Title: "a million jobs of 10 ms on 5,000 workers end in time, with less processor time than a bare channel and no worker left", Parts: []ledger.Part{
			ledger.AtMost(1.1, "finish", "a million jobs of 10 ms on 5,000 workers end within 1.10 of the ideal, jobs × work ÷ workers", "time to the end/ideal",
				burst(ours(ledger.Extra("finish", "time/ideal")))),
			ledger.AtMost(.9, "cpu", "they take at most 0.9 of the bare channel's processor time", "our processor time/the channel's", burst(over(ledger.Extra("cpu_seconds", "processor time"), Channel))),
			ledger.AtMost(1.2, "memory", "they take at most 1.2 of the bare channel's peak memory", "our peak memory/the channel's", burst(over(ledger.Extra("peak_rss", "peak memory"), Channel))),
			{ID: "left", Title: "no worker is left after the idle timeout", Subject: "workers left", Kind: judge.Never, Rule: judge.Exactly(0),
				Cases: burst(ours(ledger.Extra("left", "workers left")))},
		}},
		{ID: "pool-sizing", Goal: true, Title: "5 s after the start and after each change a pool without a number gets within 25 % of the best fixed size",
			Note:  "The best fixed size is picked afterwards, for each kind of work and for each side of the change, which no operator can do.",
			Parts: []ledger.Part{{Subject: "goodput without a number, of the best fixed size's,", Unit: "%", Rule: judge.AtLeast(75), Spread: 3, Cases: sizings}}},
	},
	Columns: []ledger.Column{
		{Key: "ns", Name: "time for each", Format: "nanos"}, {Key: "allocs", Name: "allocations for each", Format: "decimals"}, {Key: "behind", Name: "Spillway's time/this one's", Format: "ratio"},
		{Key: "worker_bytes", Name: "of an idle worker", Format: "size"}, {Key: "job_bytes", Name: "of a queued job", Format: "size"},
		{Key: "finish", Name: "time/ideal", Format: "ratio"}, {Key: "cpu_seconds", Name: "processor s", Format: "decimals"}, {Key: "peak_rss", Name: "peak RSS", Format: "size"}, {Key: "peak_goroutines", Name: "peak goroutines"}, {Key: "left", Name: "workers left"},
	},
	Behind: "behind",
	Method: []ledger.Note{
		{Title: "In turns", Text: "The contestants of one table, all numbers of workers included, take turns in one process, in a new order each round. Before each turn the contestant is made, warmed and the heap collected; afterwards it is ended. Ratios are taken within a round, of which the median counts; the verdict's interval is over repeats. Spillway runs twice: its difference from itself is the noise floor. Every round of every contestant is in runs.jsonl."},
		{Title: "1→2", Text: "The columns are producers→workers. A producer is a goroutine that submits; with more than one, all begin at the same moment."},
		{Title: "The queue", Text: "Every bounded queue has 1,024 places. A bare channel's figures move several times over with that number. Spillway counts, measures waits and catches panics while it is compared with a channel that does not."},
		{Title: "Contestants without a queue", Text: "semaphore, errgroup, ants and conc make the submitter wait until a worker is free; gammazero's queue has no bound, so its submitters never wait. tunny only calls and appears where results are waited for; conc and gammazero cannot refuse."},
		{Title: "The best peer", Text: "The contestant whose median time over the session is the shortest in that table, so that the noise of one repeat does not choose. Libraries are all but the bare channel."},
		{Title: "When a job counts", Text: "A turn ends when the jobs have ended. Of jobs without work only the last one of each producer reports its end: a counter would cost as much as what is measured. Where producers outnumber the processors, turns of submissions are five times as long, of jobs without work ten times: the first submissions of a producer that has never waited are dearer."},
		{Title: "Refusals", Text: "Workers and queue are full of jobs that do not end. Every submission must be refused, or there is no figure; Spillway's own count must agree. The bare try-send counts nothing."},
		{Title: "Allocations", Text: "Counted over a whole turn. Fewer than five for 1,000 jobs are those of the start, and count as none."},
		{Title: "Memory", Text: "Live heap and stacks after two collections, divided by 1,000 workers that have run once, and by 100,000 jobs behind two busy workers. Contestants without idle workers or without a queue have no figure."},
		{Title: "Burst", Text: "Each contestant has a process of its own. The ideal is jobs × work ÷ workers. Left are goroutines 2.5 idle timeouts after the last job; a bare channel's workers stay by design."},
		{Title: "Sizing", Text: "Jobs arrive in an open loop and are of use only if they end within 200 ms; a full pool refuses. The work changes once. What computes is offered 1.5 times what the processors can do, and 3 times after the change; what waits takes 20 ms at 1,000 a second, then 80 ms; mixed work computes 2 ms and waits as long. What computes lets others run every 100 µs, for the generator shares its process. Fixed sizes are swept in powers of two; one is told before the start, has MinWorkers = MaxWorkers and every other default."},
	},
}

// allocates is a part about allocations, of which there may be none but those of the start.
func allocates(what, setup string, producers, workers []int) ledger.Part {
	return ledger.Part{ID: "allocs", Title: what + " allocate nothing", Subject: "allocations for 1,000 " + what, Rule: judge.Below(5), Spread: 1,
		Cases: submitted(setup, producers, workers, func(us ledger.Key) ledger.Term { return ledger.Of(us, allocs).Times(1000) })}
}

// over is our figure over the least of some contestants'.
func over(f ledger.Figure, rivals ...string) func(us ledger.Key) ledger.Term {
	return func(us ledger.Key) ledger.Term {
		var theirs []ledger.Term
		for _, name := range rivals {
			theirs = append(theirs, ledger.Of(us.By(name), f))
		}
		return ledger.Of(us, f).Over(ledger.Least(theirs...))
	}
}

// ours is our figure itself.
func ours(f ledger.Figure) func(us ledger.Key) ledger.Term {
	return func(us ledger.Key) ledger.Term { return ledger.Of(us, f) }
}

// Who submits, and to how many workers.
var (
	one, crowd, oneOrCrowd = []int{1}, []int{1000}, []int{1, 1000}
	oneProcsCrowd          = []int{1, procs, 1000}
	few, many, all         = []int{2, 100}, []int{1000}, []int{2, 100, 1000}
)

const procs = 0 // as many as GOMAXPROCS was

// submitted is a case for each of these numbers of producers and workers that was measured.
func submitted(setup string, producers, workers []int, value func(us ledger.Key) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for i, n := range producers {
			if n == procs {
				n = int(e.Param("gomaxprocs"))
			}
			for _, w := range workers {
				us := ledger.Key{Setup: setup, Load: boutLoad(n, w), Pattern: Spillway}
				if e.Has(us) && !slices.Contains(producers[:i], n) {
					out = append(out, ledger.Case{Setup: fmt.Sprintf("producers %d, workers %d", n, w), Value: value(us)})
				}
			}
		}
		return out
	}
}

// burst is the burst that was measured. A smaller one has another start, and is open.
func burst(value func(us ledger.Key) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) []ledger.Case {
		us := ledger.Key{Setup: setupBurst, Load: burstLoad(burstJobs), Pattern: Spillway}
		open := ""
		if all := e.Keys(func(k ledger.Key) bool { return k.Setup == setupBurst && k.Pattern == Spillway }); len(all) > 0 && all[0] != us {
			us, open = all[0], "The goal speaks of a million jobs: run it with --jobs 1000000."
		}
		return []ledger.Case{{Setup: us.Load, Value: value(us), Open: open}}
	}
}

// sizings are the kinds of work, before and after the change.
func sizings(e *ledger.Evidence) (out []ledger.Case) {
	for _, kind := range workKinds() {
		for _, phase := range phaseNames {
			us := kind.key(phase, 0)
			fixed := e.All(ledger.Goodput, func(k ledger.Key) bool { return k.By(Spillway) == us && k != us })
			c := ledger.Case{Setup: kind.name + ", " + phase, Value: ledger.Of(us, ledger.Goodput).Over(ledger.Best(fixed...)).Times(100)}
			if !e.Has(us) {
				c.Open = "It was not run: run it with --sizing, or with --full."
			}
			out = append(out, c)
		}
	}
	return out
}
