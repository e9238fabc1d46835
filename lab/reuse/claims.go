package reuse

import (
	"fmt"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/load/judge"
	"github.com/spillway-go/spillway/load/numbers"
)

// Bytes of objects.
const (
	dirty  = 1 << 10 // are written to each
	small  = dirty   // all of it is written
	large  = 500_000
	normal = 64 << 10 // of every user of a burst
	huge   = 64 << 20 // of the outlier
)

// The cells. Those of bursts are of every contestant.
var (
	idleKey  = ledger.Key{Setup: "a minute idle", Load: "64 KiB, on and off", Pattern: spillway}
	burstKey = ledger.Key{Setup: "bursts", Load: idleKey.Load}
)

func cycleKey(name string, size int, crowd string) ledger.Key {
	return ledger.Key{Setup: "steady cycle", Load: fmt.Sprintf("%s B by %s", numbers.Format(float64(size)), crowd), Pattern: name}
}

func outlierKey(name string, with bool) ledger.Key {
	return ledger.Key{Setup: "one outlier", Load: map[bool]string{false: "none", true: "64 MiB once"}[with], Pattern: name}
}

// The figures that more than one part is made of.
var (
	peak = ledger.Extra("peak", "most in use")
	rss  = ledger.Extra("rss", "resident memory at the end")
)

// took is the time for a cycle.
func took(name string, size int, crowd string) ledger.Term {
	return ledger.Of(cycleKey(name, size, crowd), ledger.Extra("ns", "time for a cycle"))
}

func inBursts(name, key, figure string) ledger.Term {
	return ledger.Of(burstKey.By(name), ledger.Extra(key, figure))
}

var family = ledger.Family{
	ID: "reuse", Title: "Objects are reused by sync.Pool, by a channel and by objectpool, and compared with fresh ones",
	Claims: []ledger.Claim{
		{ID: "reuse-1", Goal: true, Title: "bursts find their objects again, with no more memory than the recent peak needed", Parts: []ledger.Part{
			{ID: "hits", Title: "bursts with idle gaps find their objects again", Subject: "true reuse in bursts", Unit: "%", Rule: judge.AtLeast(99.5), Spread: 0.1, Max: 100,
				Cases: ledger.Each(names[1:], func(name string) ledger.Term { return inBursts(name, "hits", "true reuse") }, syncPool, channel)},
			{ID: "strong", Title: "no more is held than the recent peak needed", Subject: "the most objects held, of the most in use,", Unit: "%", Kind: judge.Every, Rule: judge.AtMost(125),
				Cases: ledger.Each(our, func(name string) ledger.Term {
					return inBursts(name, "held", "most held").Over(ledger.Of(burstKey.By(name), peak)).Times(100)
				})},
			{ID: "idle", Title: "after 60 s without use at most 10 % is held", Subject: "the share of the peak held after a minute", Unit: "%", Kind: judge.Every, Rule: judge.AtMost(10),
				Cases: ledger.One(spillway, ledger.Of(idleKey, ledger.Extra("idle", "held after the idle time")).Over(ledger.Of(idleKey, peak)).Times(100))},
			{ID: "counted", Title: "the reported rate of reuse is the counted one", Subject: "the difference between objects made and reported", Kind: judge.Never, Rule: judge.Exactly(0),
				Cases: ledger.Each(our, func(name string) ledger.Term { return inBursts(name, "off_by", "miscount") })},
		}},
		{ID: "reuse-2", Goal: true, Title: "reuse costs about what sync.Pool costs, and clears only what was written", Parts: []ledger.Part{
			ledger.AtMost(1.25, "cycle", "get, clear and put of 1 KB cost at most a quarter more than by sync.Pool", "time for a cycle, objectpool/sync.Pool",
				ledger.Each(crowds, func(crowd string) ledger.Term { return took(spillway, small, crowd).Over(took(syncPool, small, crowd)) })),
			{ID: "allocations", Title: "get, clear and put allocate nothing", Subject: "allocations for 1,000 cycles", Kind: judge.Never, Rule: judge.Below(1),
				Cases: ledger.Each(crowds, func(crowd string) ledger.Term {
					return ledger.Of(cycleKey(spillway, small, crowd), ledger.Extra("mallocs", "allocations")).Times(1000)
				})},
			ledger.AtMost(2, "dirty", "a buffer of 500 KB with 1 KB written costs at most twice one of 1 KB", "time for a cycle, 500 KB/1 KB",
				ledger.Each(crowds, func(crowd string) ledger.Term { return took(buffers, large, crowd).Over(took(buffers, small, crowd)) })),
		}},
		{ID: "reuse-3", Goal: true, Title: "seeded misuse is caught every time", Parts: []ledger.Part{
			{Subject: "seeded bugs caught", Unit: "%", Kind: judge.Every, Rule: judge.AtLeast(100),
				Cases: ledger.Only(ledger.Case{Setup: "by tests", Value: ledger.Of(ledger.Key{Setup: "by tests", Load: "seeded bugs", Pattern: spillway}, ledger.Extra("caught", "share caught")),
					Open: "It is proven by tests, not here: go test -race ./objectpool runs every seeded bug twenty times."})},
		}},
		{ID: "reuse-4", Goal: true, Title: "one object of 64 MiB leaves no trace in memory", Parts: []ledger.Part{
			{Subject: "resident memory with/without the outlier", Unit: "x", Rule: judge.AtMost(1.05), Spread: 0.01,
				Cases: ledger.Each(our, func(name string) ledger.Term {
					return ledger.Of(outlierKey(name, true), rss).Over(ledger.Of(outlierKey(name, false), rss))
				})},
		}},
	},
	Columns: []ledger.Column{
		{Key: "ns", Name: "time for a cycle", Format: "nanos"}, {Key: "behind", Name: "Spillway's time/this one's", Format: "ratio"}, {Key: "mallocs", Name: "allocations for each", Format: "decimals"},
		{Key: "hits", Name: "true reuse, %", Format: "decimals"}, {Key: "peak", Name: "most in use"}, {Key: "held", Name: "most held"},
		{Key: "off_by", Name: "miscount"}, {Key: "idle", Name: "held after the idle time"}, {Key: "rss", Name: "resident memory at the end", Format: "size"},
	},
	Behind: "behind",
	Method: []ledger.Note{
		{Title: "Steady cycles", Text: "Get an object, write 1 KB, clear it, put it back. All contestants and sizes take turns in one process, in a new order each round, after a collection, with pools that are filled and goroutines that wait for the beginning. All clear in the same way, but for Buffers, which clear only what was written. Ratios are taken within a round, of which the median counts; the verdict's interval is over repeats. Some contestants play twice: what they differ from themselves is the noise floor."},
		{Title: "Bursts", Text: "All users get, hold for 5 ms and put objects of 64 KiB until the burst ends. Two collections in every gap empty what only collections empty. Reuse is counted where objects are made. The first burst makes them and is left out."},
		{Title: "A minute idle", Text: "It passes in virtual time, the clock of testing/synctest: the pool's own timers run and nobody waits."},
		{Title: "One outlier", Text: "Users hold 64 KiB at a time, one of which grows to 64 MiB in the middle. The resident memory is what the system reports at the end, after the runtime has given back what it can. The process without an outlier runs twice: its difference from itself is the noise floor."},
	},
}
