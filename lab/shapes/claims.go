package shapes

import (
	"fmt"
	"slices"

	"github.com/spillway-go/spillway/lab/bouts"
	"github.com/spillway-go/spillway/lab/callgrind"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/load/judge"
)

// Set-ups.
const (
	auto     = "auto-scaled"               // as package testing does
	collects = "auto-scaled, collector on" // G8
	clock    = "one batch, wall clock"     // as the first publication did
	cpuBound = "CPU-bound tasks, bounded"  // G6
	countH   = "reuse in the set-up of H, instructions"
	asB      = "reuse in the set-up of B"
	noBuffer = "no channel, or one for it" // the load of shapes whose channel has no buffer to choose

	noiseOfTimes = 0.03 // between sessions
	atOnce       = 100  // requests of G9
)

// The sizes of the channels' buffers, and of the pools beside GOMAXPROCS.
var buffers, sizes = []int{0, 1, 128}, []int{10, 100, 1000}

func (s Shape) key(setup string) ledger.Key {
	load := bufferLabel(s.Buffer)
	switch s.Kind {
	case Serial, SpawnWG, SpawnWGEach, Semaphore:
		load = noBuffer
	case SpawnChan:
		load = bufferLabel(min(s.Buffer, 1)) // it carries a single value
	}
	return ledger.Key{Setup: setup, Load: load, Pattern: s.label()}
}

func bufferLabel(n int) string { return fmt.Sprintf("buffer %d", n) }

func boundKey(setup string, bound int, pattern string) ledger.Key {
	return ledger.Key{Setup: setup, Load: fmt.Sprintf("bound %d", bound), Pattern: pattern}
}

// takes is the time for a unit in a shape whose channels have such buffers.
func (s Shape) takes(setup string, buffer int) ledger.Term {
	s.Buffer = buffer
	return ledger.Of(s.key(setup), nanos)
}

// Shapes of several claims, whose buffers are those that were run.
var spawnWGs, spawnEach, spawnChans = Shape{Kind: SpawnWG}, Shape{Kind: SpawnWGEach}, Shape{Kind: SpawnChan}

func pool(workers int) Shape { return Shape{Kind: SharedChan, Workers: workers} }

var (
	nanos  = ledger.Extra("ns", "time for a unit")
	allocs = ledger.Extra("allocs", "allocations of a unit")
	bytes  = ledger.Extra("bytes", "bytes of a unit")
	cpu    = ledger.Extra("cpu_ns", "processor time")
)

var family = ledger.Family{
	ID: "G", Title: "Handing work to a goroutine costs more than the work",
	Source:  "gsarmaonline, github.com/gsarmaonline/golang-measurements and its article (2026 update)",
	Sources: []ledger.Source{{Name: "gsarmaonline/golang-measurements", URL: "https://github.com/gsarmaonline/golang-measurements", What: "and the article that goes with it"}},
	Claims: []ledger.Claim{
		{ID: "G1", Title: "everything above serial is synchronization", Published: "0.23 ns serial, 74 ns the fastest concurrent shape",
			Parts: []ledger.Part{times("", "", "the fastest concurrent shape/serial time of a unit", judge.AtLeast(100), eachBuffer(fastest), 322)}},
		{ID: "G2", Title: "taking the channel out of spawn-per-request about halves its cost", Published: "280 ns, 160 B, 3 allocs → 131 ns, 56 B, 2 allocs",
			Note: "The channel version waits for each result before it starts the next goroutine. Whether the WaitGroup does is not stated: with one Wait at the end goroutines pile up, and the longer the batch, the longer each takes. Both are judged. The bytes of a call are an exact count, and stand beside; the published 56 B and 2 allocations fit both ways to wait.",
			Parts: []ledger.Part{
				times("cost", "taking the channel out about halves the time of a call", "SpawnPerRequestWG/SpawnPerRequestChan", judge.Between(.4, .6),
					waits([]int{0, 1}, func(spawn Shape, b int) ledger.Term { return spawn.takes(auto, b).Over(spawnChans.takes(auto, b)) }), .468),
				{ID: "bytes", Title: "a call with a channel allocates 160 bytes, without one 56", Subject: "bytes of a call/those published", Unit: "x", Rule: judge.Between(.95, 1.05), Spread: .01, Published: []float64{1}, Beside: true,
					Cases: ledger.Only(ledger.Case{Setup: SpawnWGEach, Value: ledger.Of(spawnEach.key(auto), bytes).Times(1. / 56)},
						ledger.Case{Setup: SpawnChan + ", buffer 0", Value: ledger.Of(spawnChans.key(auto), bytes).Times(1. / 160)})},
			}},
		{ID: "G3", Title: "a pool near GOMAXPROCS beats spawning and allocates nothing", Published: "96 ns, 0 B, 0 allocs at 10 workers, against 131 ns",
			Note: "Ten workers were near GOMAXPROCS on the published machine of ten cores. Elsewhere GOMAXPROCS decides.",
			Parts: []ledger.Part{
				times("faster", "a pool near GOMAXPROCS beats spawning", "PoolSharedChan/SpawnPerRequestWG", judge.Below(1),
					nearProcs(func(procs, b int) ledger.Term { return pool(procs).takes(auto, b).Over(spawnWGs.takes(auto, b)) }), .733),
				{ID: "allocs", Title: "a pool near GOMAXPROCS allocates nothing", Subject: "allocations of 1,000 units in PoolSharedChan", Kind: judge.Never, Rule: judge.Below(1), Published: []float64{0},
					Cases: nearProcs(func(procs, b int) ledger.Term {
						return ledger.Of(Shape{SharedChan, procs, b}.key(auto), allocs).Times(1000)
					})},
			}},
		{ID: "G4", Title: "a pool of 1,000 workers loses to spawning without a channel, though it beats spawning with one", Published: "244 ns at 1,000 workers (193 at 100) vs 131 without a channel and 280 with one",
			Note: "Whether the published version without a channel waits for each call or once at the end is not stated: both are judged.",
			Parts: []ledger.Part{
				times("loses", "a pool of 1,000 workers loses to spawning without a channel", "PoolSharedChan_1000/SpawnPerRequestWG", judge.Above(1),
					waits(buffers, func(spawn Shape, b int) ledger.Term { return pool(1000).takes(auto, b).Over(spawn.takes(auto, b)) }), 1.86),
				times("wins", "a pool of 1,000 workers beats spawning with a channel", "PoolSharedChan_1000/SpawnPerRequestChan", judge.Below(1),
					eachBuffer(func(_, b int) ledger.Term { return pool(1000).takes(auto, b).Over(spawnChans.takes(auto, b)) }), .871),
				times("hundred", "a pool of 100 workers loses to spawning without a channel too", "PoolSharedChan_100/SpawnPerRequestWG", judge.Above(1),
					waits(buffers, func(spawn Shape, b int) ledger.Term { return pool(100).takes(auto, b).Over(spawn.takes(auto, b)) }), 1.47),
			}},
		{ID: "G5", Title: "one channel for each worker beats a shared channel", Published: "74 vs 193 ns at 100 workers",
			Parts: []ledger.Part{times("", "", "PoolPerWorkerChan_100/PoolSharedChan_100", judge.Below(.9),
				onSeveral(eachBuffer(func(_, b int) ledger.Term {
					return Shape{Kind: PerWorker, Workers: 100}.takes(auto, b).Over(pool(100).takes(auto, b))
				})), .383)}},
		{ID: "G6", Title: "CPU-bound work: as many goroutines as GOMAXPROCS are best, however they are bounded", Published: "a rule, no figure",
			Note: "All bounds from GOMAXPROCS upwards keep the processors busy, so that the best of them is often a matter of luck. That is why a bound that does at least 95 % of what any other does counts as best. The three ways are compared at GOMAXPROCS.",
			Parts: []ledger.Part{bestBound(boundPool), bestBound(boundSem), bestBound(boundDispatch),
				tasks("many", "128 times as many goroutines are slower by more than 5 %", "time of a task at 128x GOMAXPROCS/at GOMAXPROCS", judge.Above(1.05), tooMany),
				tasks("alike", "the three ways differ by less than 5 % at an equal bound", "time of a task by the first/by the second", judge.Between(.95, 1.05), alike)}},
		{ID: "G8", Title: "timing fixed batches by the wall clock misleads",
			Published: "a million units by the wall clock (M1 Max): spawning 444 ms, pools of 10, 100 and 1,000 167, 273 and 386 ms; with a channel each, of 100 and 1,000 workers, 228 and 310 ms",
			Note:      "The published batches from a million to a billion agree within 5 % for a unit: their fixed size was not the fault. What is compared is the ratio of spawning to a pool, averaged over pools of 10, 100 and 1,000 workers and all buffers, with the collector on in both. The methods disagree if they give ratios that differ by more than 5 %.",
			Parts:     []ledger.Part{{Subject: "spawning/pool by the wall clock, over the same auto-scaled,", Unit: "x", Rule: judge.Outside(.95, 1.05), Spread: .01, Cases: ledger.One("all pools and buffers", methods())}}},
		{ID: "G9", Title: "once concurrency is bounded, pooling objects saves more than pooling goroutines", Published: "a rule, no figure",
			Note: "In the published shapes of H and B. What object reuse saves is between a pool that reuses objects and one that does not; what goroutine reuse saves, between that and a goroutine for each request. The store, the clients and an empty pattern cost the same in all and are in neither. In H the replies are given back once they are answered; as published only those of failed requests were, which stands beside. Its small objects are judged by instructions, which leave out what the collector saves. The 500 KB of B are judged by processor time, because they cost the kernel and the collector more than the program, which no instructions show.",
			Parts: []ledger.Part{
				{ID: "small", Title: "pooling small replies saves more instructions than pooling goroutines", Subject: "instructions of a request that object reuse saves − that goroutine reuse saves", Rule: judge.Above(0), Cases: counted},
				{ID: "large", Title: "pooling large buffers saves more processor time than pooling goroutines", Subject: "processor time for a request that object reuse saves − that goroutine reuse saves", Unit: "ns", Rule: judge.Above(0),
					Cases: ledger.Only(saving(asB, PoolReuse, cpu))},
			}},
		{ID: "G12", Title: "bounding does most of the work, not reusing goroutines", Published: "a pool of 1,000 workers takes 244 ns a unit, one near GOMAXPROCS 96; no figure of a semaphore",
			Note:  "A semaphore of as many slots as the pool has workers bounds as the pool does, and starts a goroutine for each unit. It has half of what the pool gains over spawning if it takes no longer than the mean of both. The buffer with which the pool is fastest, the largest, decides; with others the pool may gain nothing.",
			Parts: []ledger.Part{times("", "a semaphore has half of what a pool near GOMAXPROCS gains over spawning, or more", "the mean of spawning and a pool/a semaphore of the pool's size", judge.AtLeast(1), halfway)}},
	},
	Columns: []ledger.Column{
		{Key: "ns", Name: "time for a unit", Format: "nanos"}, {Key: "cpu_ns", Name: "processor time for a request", Format: "nanos"},
		{Key: "instructions", Name: "instructions of a request"},
		{Key: "allocs", Name: "allocations", Format: "decimals"}, {Key: "bytes", Name: "allocated", Format: "size"},
	},
	Method: []ledger.Note{
		{Title: "The buffer decides", Text: "The published benchmarks do not state the size of the channels' buffers. An unbuffered channel parks and wakes a goroutine for every unit, a buffer of 128 lets both sides run on; that moves a pool by several times, more than its number of workers does. So every claim about channels is judged for each buffer."},
		{Title: "Two ways to measure", Text: "Auto-scaled: batches grow until one takes long enough, after a collection, the start of the workers left out, as package testing does. All shapes take turns in one process, in a new order each round; ratios are taken within a round, of which the median counts, and the verdict's interval is over repeats. No collection runs within a turn, except where the two ways are compared. By the wall clock: a batch of a million, cold, in a process of its own, the start of the workers and collections in it; the median of several such processes counts, and of spawning, on which every ratio rests, twice as many. Most shapes run twice by either method: what they differ from themselves is the noise floor."},
		{Title: "How many goroutines for CPU-bound work", Text: "Tasks of pure computing, some 15 µs each, under bounds from one goroutine to 128 times GOMAXPROCS, by a pool on an unbuffered channel, by a semaphore with a goroutine for each task, and by a dispatcher that hands a task to a worker that is idle. The best bound from half to twice GOMAXPROCS is compared with the best other one."},
		{Title: "Objects or goroutines", Text: "A hundred requests at once: a goroutine and an object for each (spawn), reused goroutines (pool), reused goroutines and objects (pool-reuse), in turns in one process. In the set-up of H these are the published patterns naive and workerpool, and workerpool with replies that are given back once they are answered. Where Valgrind is installed, callgrind counts the instructions of 1,000 of its requests in each of three rounds, in a new order each round, over a store that does not wait, with one processor and without a collector: other load does not change them. In the set-up of B these are jobs of 500 KB that wait 0.2 ms, a hundredth of the published time, in the published pool with a hundred workers; processor time is with the collector's share."},
	},
}

// times is a part about a ratio of times.
func times(id, title, subject string, rule judge.Rule, cases func(*ledger.Evidence) []ledger.Case, published ...float64) ledger.Part {
	return ledger.Part{ID: id, Title: title, Subject: subject, Unit: "x", Rule: rule, Published: published, Spread: noiseOfTimes, Cases: cases}
}

// procs is GOMAXPROCS of the runs; 10, as published, if there are none.
func procs(e *ledger.Evidence) int {
	if n := e.Param("gomaxprocs"); n >= 1 {
		return int(n)
	}
	return 10
}

// eachBuffer is a case for each size of the buffers.
func eachBuffer(value func(procs, buffer int) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for _, b := range buffers {
			out = append(out, ledger.Case{Setup: bufferLabel(b), Value: value(procs(e), b)})
		}
		return out
	}
}

// waits are the cases of both ways to wait for goroutines without a channel.
func waits(buffers []int, value func(spawn Shape, buffer int) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	var out []ledger.Case
	for i, spawn := range []Shape{spawnEach, spawnWGs} {
		for _, b := range buffers {
			out = append(out, ledger.Case{Setup: []string{"a Wait for each call, ", "one Wait at the end, "}[i] + bufferLabel(b), Value: value(spawn, b)})
		}
	}
	return ledger.Only(out...)
}

// nearProcs names in the cases the number of workers, which is GOMAXPROCS.
func nearProcs(value func(procs, buffer int) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) []ledger.Case {
		out := eachBuffer(value)(e)
		for i := range out {
			out[i].Setup = fmt.Sprintf("%d workers, %s", procs(e), out[i].Setup)
		}
		return out
	}
}

// onSeveral is for claims about contention, which one processor cannot have.
func onSeveral(cases func(*ledger.Evidence) []ledger.Case) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) []ledger.Case {
		out := cases(e)
		for i := range out {
			if procs(e) == 1 {
				out[i].Needs = "The claim is about goroutines that run at the same time, and GOMAXPROCS is 1 here."
			}
		}
		return out
	}
}

// fastest is the fastest concurrent shape with that buffer, or without one, over the serial one.
func fastest(procs, buffer int) ledger.Term {
	var all []ledger.Term
	for _, s := range units(procs) {
		like := s
		like.Buffer = buffer
		if s.Kind != Serial && like.key(auto) == s.key(auto) {
			all = append(all, ledger.Of(s.key(auto), nanos))
		}
	}
	return ledger.Least(all...).Over(Shape{Kind: Serial}.takes(auto, buffer))
}

// halfway compares a semaphore with the mean of spawning and the pool that is fastest, with the
// largest buffer.
func halfway(e *ledger.Evidence) []ledger.Case {
	n, b := procs(e), slices.Max(buffers)
	mean := spawnWGs.takes(auto, b).Plus(pool(n).takes(auto, b)).Times(.5)
	return []ledger.Case{{Setup: bufferLabel(b), Value: mean.Over(Shape{Kind: Semaphore, Workers: n}.takes(auto, b))}}
}

// bestBound compares the best bound within half and twice GOMAXPROCS with the best other
// one.
func bestBound(mechanism string) ledger.Part {
	return tasks(mechanism, "as many goroutines as GOMAXPROCS are best, bounded by a "+mechanism, "tasks a second at the best bound within 0.5–2x GOMAXPROCS/at the best other bound", judge.AtLeast(.95),
		func(procs int) []ledger.Case {
			times := map[bool][]ledger.Term{} // of the bounds within that range, and of the others
			for _, n := range bounds(procs) {
				within := 2*n >= procs && n <= 2*procs
				times[within] = append(times[within], task(n, mechanism))
			}
			return []ledger.Case{{Setup: cpuBound, Value: ledger.Least(times[false]...).Over(ledger.Least(times[true]...))}}
		})
}

// tasks is a part about the time of a task of G6, which is long.
func tasks(id, title, subject string, rule judge.Rule, cases func(procs int) []ledger.Case) ledger.Part {
	return ledger.Part{ID: id, Title: title, Subject: subject, Unit: "x", Rule: rule, Spread: .01,
		Cases: onSeveral(func(e *ledger.Evidence) []ledger.Case { return cases(procs(e)) })}
}

func task(bound int, mechanism string) ledger.Term {
	return ledger.Of(boundKey(cpuBound, bound, mechanism), nanos)
}

func tooMany(procs int) (out []ledger.Case) {
	for _, m := range mechanisms {
		out = append(out, ledger.Case{Setup: m, Value: task(128*procs, m).Over(task(procs, m))})
	}
	return out
}

// alike compares the mechanisms two by two.
func alike(procs int) (out []ledger.Case) {
	for i, first := range mechanisms {
		for _, second := range mechanisms[i+1:] {
			out = append(out, ledger.Case{Setup: fmt.Sprintf("%s/%s, bound %d", first, second, procs), Value: task(procs, first).Over(task(procs, second))})
		}
	}
	return out
}

// methods compares the two by the ratio of spawning to a pool, in the mean.
func methods() ledger.Term {
	sum := ledger.Const(0)
	for _, workers := range sizes {
		for _, b := range buffers {
			by := func(setup string) ledger.Term { return spawnChans.takes(setup, b).Over(pool(workers).takes(setup, b)) }
			sum = sum.Plus(by(clock).Over(by(collects)))
		}
	}
	return sum.Times(1 / float64(len(sizes)*len(buffers)))
}

// saving is what object reuse saves more than goroutine reuse.
func saving(setup, reusing string, f ledger.Figure) ledger.Case {
	of := func(pattern string) ledger.Term { return ledger.Of(boundKey(setup, atOnce, pattern), f) }
	objects, goroutines := of(Pool).Minus(of(reusing)), of(Spawn).Minus(of(Pool))
	c := ledger.Case{Setup: setup, Value: objects.Minus(goroutines)}
	if reusing == AsPrinted {
		c.Setup, c.Beside = setup+", as published", true
	}
	return c
}

// counted is what instructions say; where none were counted, what to do.
func counted(e *ledger.Evidence) []ledger.Case {
	c := saving(countH, PoolReuse, bouts.Instructions)
	if e.Has(boundKey(asB, atOnce, Pool)) && !e.Has(boundKey(countH, atOnce, Pool)) {
		c.Open = callgrind.Missing
	}
	return []ledger.Case{c, saving(countH, AsPrinted, bouts.Instructions)}
}
