package load

import (
	"fmt"
	"slices"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/load/judge"
)

var cost = ledger.Extra("cpu_us", "processor time for a request")

var family = ledger.Family{
	ID: "load", Title: "A closed loop is driven by spillway load, wrk, hey, vegeta and k6, and what a request costs its sender is compared",
	Claims: []ledger.Claim{
		{ID: "load-1", Goal: true, Title: "a closed loop costs spillway load at most a quarter more than wrk, and at most 0.4 of what hey, vegeta and k6 take",
			Note: "That a request allocates nothing is proven by a test: go test ./load/loadgen -run Alloc.",
			Parts: []ledger.Part{
				ours(wrk, "spillway load takes at most a quarter more processor time than wrk", 1.25),
				ours("hey", "spillway load takes at most 0.4 of hey's processor time", 0.4),
				ours("vegeta", "spillway load takes at most 0.4 of vegeta's processor time", 0.4),
				ours(k6, "spillway load takes at most 0.4 of k6's processor time", 0.4),
				{ID: "memory", Title: "spillway load needs less than 30 MiB", Subject: "the peak RSS of spillway load", Unit: "MiB", Kind: judge.Every, Rule: judge.Below(30),
					Cases: ledger.One(key(spillway).Load, ledger.Of(key(spillway), ledger.PeakRSS).Times(1.0/(1<<20)))},
			}},
	},
	Columns: []ledger.Column{
		{Key: cost.Key, Name: "processor time for a request", Format: "micros"}, {Key: "requests", Name: "requests"}, {Key: "rate", Name: "requests a second"},
	},
	Method: []ledger.Note{
		{Title: "The loop", Text: "Each of the connections sends a GET, reads the answer of 18 bytes, and sends again, over HTTP/1.1. The server is net/http's, new for each turn, in the lab's process, which does nothing else meanwhile. Server and generator share the processors, as they do on a developer's machine. All contestants have one turn in each repeat, in a new order."},
		{Title: "The contestants", Text: "spillway is this command: spillway load --clients. The others are what the system finds in PATH, in whatever version: wrk with a thread for each processor, hey -c, vegeta attack with -rate 0 and as many workers as connections, k6 run with as many virtual users, a script of one line and bodies discarded, oha -c."},
		{Title: "The figures", Text: "Processor time is user and system time of the generator's process from its start to its exit, by the system, divided by the requests that the server counted. So it has the start, and what is computed of the latencies at the end, in it: with --time 10s less of both. The part of the kernel's network that runs in the name of the server is not in it. Peak resident memory is the kernel's own figure, read every 20 ms. The rate is the server's, from its first request to its last; it says which share of the processors the generator left."},
	},
}

// ours is the part that compares spillway load with another generator.
func ours(name, title string, most float64) ledger.Part {
	return ledger.AtMost(most, name, title, "processor time for a request, spillway load/"+name, func(e *ledger.Evidence) []ledger.Case {
		us, other := key(spillway), key(name)
		c := ledger.Case{Setup: us.Load, Value: ledger.Of(us, cost).Over(ledger.Of(other, cost))}
		if !e.Has(other) {
			t := tools[slices.IndexFunc(tools, func(t tool) bool { return t.name == name })]
			c.Open = fmt.Sprintf("There was no run of %s with %s; it must be in PATH: %s.", name, us.Load, t.install)
		}
		return []ledger.Case{c}
	})
}
