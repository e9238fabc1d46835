package budget

import (
	"fmt"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/load/judge"
)

// The figures.
var (
	admissions = ledger.Extra("admissions", "admissions a second")
	rateShare  = ledger.Extra("rate_share", "admissions, as a part of what the rate and one burst allow")

	calm   = ledger.Extra("calm", "what ran at a time")
	cut    = ledger.Extra("cut", "what ran at a time with a replica cut off")
	paused = ledger.Extra("paused", "what ran at a time with a replica stopped and going on")
	phases = []ledger.Figure{calm, cut, paused}
)

// overOf is by how much the total was exceeded, and leasesOf that in parts of replicas x
// lease.
func overOf(f ledger.Figure) ledger.Figure {
	return ledger.Extra(f.Key+"_over", "what ran at a time beyond the total")
}

func leasesOf(f ledger.Figure) ledger.Figure {
	return ledger.Extra(f.Key+"_leases", "what ran beyond the total, in parts of replicas x lease")
}

// goal is about so many replicas.
const goal = 8

// about is a case of a contestant with leases, open where it was run with fewer replicas.
func about(e *ledger.Evidence, setup, name, of string, f ledger.Figure) ledger.Case {
	k := key(setup, name)
	c := ledger.Case{Setup: name + of, Value: ledger.Of(k, f)}
	if n := e.ParamOf(k, "replicas"); e.Has(k) && n < goal {
		c.Open = fmt.Sprintf("The goal is about %d replicas: run it without --replicas.", goal)
	}
	return c
}

// each is a case for both ways of leasing.
func each(setup string, of string, f ledger.Figure) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for _, name := range []string{Leases, Closed} {
			out = append(out, about(e, setup, name, of, f))
		}
		return out
	}
}

func disturbed(e *ledger.Evidence) (out []ledger.Case) {
	for _, name := range []string{Leases, Closed} {
		out = append(out, about(e, setupWork, name, ", one replica cut off", leasesOf(cut)), about(e, setupWork, name, ", one replica stopped", leasesOf(paused)))
	}
	return out
}

var family = ledger.Family{
	ID:    "budget",
	Title: "Replicas share one budget by leases, by asking for each admission, or not at all",
	Claims: []ledger.Claim{
		{ID: "engine-3", Goal: true, Title: "a budget shared by eight replicas by leases admits a million a second, and is exceeded by at most replicas x lease",
			Note: "An admission takes one from the rate and a slot of the limiter, and gives the slot back.",
			Parts: []ledger.Part{
				{ID: "throughput", Title: "the replicas admit at least a million a second together", Subject: "admissions a second", Unit: "/s", Rule: judge.AtLeast(1e6),
					Cases: func(e *ledger.Evidence) []ledger.Case {
						return []ledger.Case{about(e, setupRate, Leases, "", admissions)}
					}},
				{ID: "rate", Title: "no more is admitted than the rate and a tenth of a second of it allow", Subject: "admissions, as a part of what the rate and one burst allow", Unit: "x", Kind: judge.Never, Rule: judge.AtMost(1),
					Cases: func(e *ledger.Evidence) []ledger.Case {
						return []ledger.Case{about(e, setupRate, Leases, "", rateShare)}
					}},
				{ID: "calm", Title: "undisturbed, no more runs at a time than the total", Subject: "what ran at a time beyond the total", Kind: judge.Never, Rule: judge.Exactly(0),
					Cases: each(setupWork, "", overOf(calm))},
				{ID: "disturbed", Title: "with a replica cut off or stopped, no more runs beyond the total than replicas x lease", Subject: "what ran beyond the total, in parts of replicas x lease", Kind: judge.Never, Rule: judge.AtMost(1),
					Cases: disturbed},
			}},
	},
	Columns: []ledger.Column{
		{Key: admissions.Key, Name: "admissions/s"}, {Key: rateShare.Key, Name: "of what the rate allows", Format: "decimals"},
		{Key: calm.Key, Name: "running at most"}, {Key: cut.Key, Name: "one cut off"}, {Key: paused.Key, Name: "one stopped"}, {Key: "lease", Name: "largest lease"},
	},
	Method: []ledger.Note{
		{Title: "The processes", Text: "Each replica is a process, and so is the engine, a NATS server with JetStream that keeps its data in files. All of them share this machine's processors."},
		{Title: "The referee", Text: "A counter in memory that all replicas map: each adds one when work begins and takes one when it ends, and the largest sum is kept. Work of a process that is stopped counts as running, as it does for a database that works for it."},
		{Title: "The contestants", Text: "leases is clusterlimit, which goes on with its last lease while it is cut off, less and less; failing closed it does not. Asking for each is a request to a counter in the engine's process before each admission and a message after it, which is the least that asking can cost; a replica that gets no answer admits nothing. With no shared budget each replica has a limiter and a rate of the whole total."},
		{Title: "The disturbances", Text: "The last replica reaches the engine through a proxy that passes nothing for two leases. Then the first is stopped by SIGSTOP for two leases and goes on. Clients ask back to back, and again 1 ms after a refusal."},
		{Title: "Noise", Text: "Leases run twice in every repeat where admissions are counted: what they differ from themselves is the noise floor."},
	},
}
