package admission

import (
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/load/judge"
)

// extra is a figure that a service has measured until it is killed, too.
func extra(key, name string) ledger.Figure {
	return ledger.Figure{Key: key, Name: name, OfKilled: true}
}

var (
	goodput  = extra("goodput", "goodput")
	worst    = extra("probe_worst_ms", "slowest answer to a probe")
	memory   = extra("memory_share", "peak resident memory, of the bound,")
	critical = ledger.Extra("critical", "critical requests answered well")
	wave     = ledger.Extra("wave", "most arrivals in 100 ms over the mean")
	answered = ledger.Extra("answered", "share of the lookups answered in time")
	unsafely = ledger.Extra("unsafe", "report that the estimate is unsafe")
)

func of(part, backend, pattern string, f ledger.Figure) ledger.Term {
	return ledger.Of(key(part, backend, pattern), f)
}

// each is a case for each backend.
func each(part string, value func(backend string) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	var out []ledger.Case
	for _, backend := range backends(part) {
		out = append(out, ledger.Case{Setup: key(part, backend, ours).Setup, Value: value(backend)})
	}
	return ledger.Only(out...)
}

// attacked is a case with hostile clients and, beside it, one without.
func attacked(f ledger.Figure) func(*ledger.Evidence) []ledger.Case {
	return ledger.Only(
		ledger.Case{Setup: "hostile clients", Value: of(hostile, nWay, ours, f)},
		ledger.Case{Setup: "no hostile clients", Value: of(hostile, nWay, calm, f), Beside: true},
	)
}

// forStayers is the part of the backend that is left for those that stay: a third of the
// clients leaves after half of the service time, and where work ends with its caller
// uses half of it.
var forStayers = map[string]float64{nWay: 2 / (2 + 1.), degrading: 2 / (2 + .5)}

// offBy is the largest difference of any priority's shares, predicted and refused.
func offBy(backend string) ledger.Term {
	var all []ledger.Term
	for _, priority := range []string{"low", "normal", "critical"} {
		f := ledger.Extra("share_"+priority, "share of "+priority+" requests refused")
		predicted, refused := of(dryrun, backend, dry, f), of(dryrun, backend, ours, f)
		all = append(all, predicted.Minus(refused), refused.Minus(predicted))
	}
	return ledger.Largest(all...)
}

var family = ledger.Family{
	ID:    "admission",
	Title: "The HTTP middleware stands in front of a service in a storm of retries, with clients that leave, in a dry run, under attack, and with requests that only wait",
	Claims: []ledger.Claim{
		{ID: "admission-1", Goal: true, Title: "at three times the capacity, with retries, it answers at least 95 % of the capacity", Parts: []ledger.Part{
			{Subject: "goodput/capacity", Unit: "x", Rule: judge.AtLeast(0.95), Spread: 0.02,
				Cases: each(storm, func(backend string) ledger.Term {
					return of(storm, backend, ours, goodput).Over(of(capacity, backend, saturated, goodput))
				})},
		}},
		{ID: "admission-2", Goal: true, Title: "at three times the capacity at least 99 % of the critical requests are answered well",
			Note: "A fifth of the requests is critical: 0.6 times the capacity, so that all of them fit.",
			Parts: []ledger.Part{{Subject: "critical requests answered well", Unit: "%", Rule: judge.AtLeast(99), Spread: 0.3, Max: 100,
				Cases: each(storm, func(backend string) ledger.Term { return of(storm, backend, ours, critical) })}}},
		{ID: "admission-3", Goal: true, Title: "retries come back spread out: no 100 ms after the first refusal have over three times the mean arrivals", Parts: []ledger.Part{
			{Subject: "most arrivals in 100 ms/mean", Unit: "x", Rule: judge.AtMost(3), Spread: 0.2,
				Cases: each(storm, func(backend string) ledger.Term { return of(storm, backend, ours, wave) })},
		}},
		{ID: "admission-4", Goal: true, Title: "when a third of the clients leaves after half of the service time, the others get at least 90 % of what there is for them",
			Note: "Their capacity is the backend's without what those that leave use of it, or what a limiter of exactly the right size achieves in the same storm, if that is more.",
			Parts: []ledger.Part{{Subject: "goodput of those that stay/their capacity", Unit: "x", Rule: judge.AtLeast(0.9), Spread: 0.03,
				Cases: each(leavers, func(backend string) ledger.Term {
					possible := ledger.Largest(of(leavers, backend, fixed, goodput), of(capacity, backend, saturated, goodput).Times(forStayers[backend]))
					return of(leavers, backend, ours, goodput).Over(possible)
				})}}},
		{ID: "admission-5", Goal: true, Title: "a dry run at twice the capacity refuses nothing", Parts: []ledger.Part{
			{Subject: "requests refused in a dry run", Kind: judge.Never, Rule: judge.Exactly(0),
				Cases: each(dryrun, func(backend string) ledger.Term {
					return of(dryrun, backend, dry, ledger.Extra("shed", "requests refused by the service")).Plus(of(dryrun, backend, dry, ledger.Extra("refused", "refusals that clients got")))
				})},
		}},
		{ID: "admission-6", Goal: true, Title: "a dry run predicts the share that will be refused of each priority within 10 percentage points", Parts: []ledger.Part{
			{Subject: "largest difference of predicted and refused", Unit: "points", Rule: judge.AtMost(10), Spread: 2, Max: 100,
				Cases: ledger.Only(ledger.Case{Setup: key(dryrun, nWay, ours).Setup, Value: offBy(nWay)})},
		}},
		{ID: "admission-7", Goal: true, Title: "a dry run's report says that its estimate is unsafe where the backend gets less done the more it is asked, and only there", Parts: []ledger.Part{
			{Subject: "reports that are right", Unit: "%", Kind: judge.Every, Rule: judge.AtLeast(100),
				Cases: each(dryrun, func(backend string) ledger.Term {
					unsafe := of(dryrun, backend, dry, unsafely).Times(100)
					if backend == degrading {
						return unsafe
					}
					return ledger.Const(100).Minus(unsafe)
				})},
		}},
		{ID: "admission-8", Goal: true, Title: "health probes are answered in under 100 ms throughout, whatever hostile clients do", Parts: []ledger.Part{
			{Subject: "slowest answer to a probe", Unit: "ms", Kind: judge.Every, Rule: judge.Below(100), Max: 60_000, Cases: attacked(worst)},
		}},
		{ID: "admission-9", Goal: true, Title: "meanwhile its memory stays within 64 MiB and 32 KiB for each connection", Parts: []ledger.Part{
			{Subject: "peak resident memory/bound", Unit: "%", Kind: judge.Every, Rule: judge.AtMost(100), Cases: attacked(memory)},
		}},
		{ID: "admission-10", Goal: true, Title: "work that only waits stops nobody else: lookups are answered in time at least 95 % as often as without a limit", Parts: []ledger.Part{
			{Subject: "lookups answered/those without a limit", Unit: "x", Rule: judge.AtLeast(0.95), Spread: 0.02,
				Cases: each(holders, func(kind string) ledger.Term {
					return of(holders, kind, ours, answered).Over(of(holders, kind, none, answered))
				})},
		}},
	},
	Columns: []ledger.Column{
		{Key: "critical", Name: "critical requests answered, %", Format: "decimals"}, {Key: "retries", Name: "retries"}, {Key: "throttled", Name: "held back by clients"},
		{Key: "arrivals_mean", Name: "arrivals in 100 ms"}, {Key: "arrivals_most", Name: "the most"}, {Key: "lag_ms", Name: "sent late by, ms", Format: "decimals"},
		{Key: "would", Name: "would be refused"}, {Key: "share_low", Name: "of low ones, %", Format: "decimals"}, {Key: "share_normal", Name: "of normal ones, %", Format: "decimals"}, {Key: "share_critical", Name: "of critical ones, %", Format: "decimals"},
		{Key: "probe_p50_ms", Name: "probe p50, ms", Format: "decimals"}, {Key: "probe_p99_ms", Name: "p99, ms", Format: "decimals"}, {Key: "probe_worst_ms", Name: "slowest, ms", Format: "decimals"}, {Key: "probes_failed", Name: "probes failed"},
		{Key: "connections", Name: "hostile connections"}, {Key: "known", Name: "known clients answered, %", Format: "decimals"}, {Key: "memory_mib", Name: "peak memory, MiB"},
		{Key: "answered", Name: "lookups answered, %", Format: "decimals"}, {Key: "inside", Name: "requests inside", Format: "decimals"}, {Key: "holders_refused", Name: "holders refused"},
	},
	Method: []ledger.Note{
		{Title: "The service", Text: "One handler that waits for a backend of ten slots, 20 to 60 ms a request, behind admissionhttp with limiter.Config{}, in a process of its own. N-way: ten at a time, others wait in a hidden queue, and what is in a slot runs to its end also when its client has left. Degrading: all run at once, and with c of them the total falls to √(10/c); work ends when its client leaves. The capacity is measured in a closed loop without a limit, in every repeat. Nearly all of a request is waiting: the two backends are measured at the same time, and so is Spillway's twin, whose difference from it is the noise floor."},
		{Title: "Where retries are counted", Text: "200 clients, each with a transport of admissionhttp/client and so with a budget and a memory of its own, send three times the capacity between them, by an open loop with Poisson arrivals. A request has five seconds, its retries included. Arrivals are counted by the service, retries included, in steps of 100 ms from the first refusal on. Goodput is what was answered within the measurement, and the load goes on after it, so that nothing is served by an idle backend later. A request that a client held back itself counts as refused."},
		{Title: "Clients that leave", Text: "Every third client closes its connection after half of the mean service time. What those that stay can get is the capacity without what the others use of it, where each of them is admitted: a third of the clients uses half of its work on the degrading backend, all of it in a slot of the N-way one."},
		{Title: "A dry run", Text: "Requests without retries, that leave after a second, come slowly until twice the capacity, once in a dry run and once for real. Of each priority the share that would have been refused is compared with the share that was refused, or left while it waited. On the degrading backend the dry run sees the collapse that a limit prevents: there its report has to say that the estimate is unsafe."},
		{Title: "Hostile clients", Text: "From a third process: connections that stay idle (a third of the files that a process may open, at most 50,000), 200 that send a header a second, headers of 1 MB, bodies without an end and bodies of two bytes a second, clients that close their half before the answer or within the request, and HTTP/2 streams that are reset as soon as they are opened. What they send is bounded, some megabytes and two thousand streams a second. Probes come on a new connection each, 50 a second, and their time counts from the intended start. Known clients have a credential and are critical. A slow body holds a slot until http.Server.ReadTimeout, here ten seconds: that is what the known clients lose."},
		{Title: "Requests that only wait", Text: "Lookups, each a request to the N-way backend, come at a fifth of its capacity; each waits a second. When the measurement begins, a hundred clients come that ask the backend for nothing, of one kind in each set-up: they read nothing of an answer of 4 MiB, send one byte of a body, poll for 1.5 s, or call a dependency that hangs until the deadline. One that is refused, or whose request has ended, begins anew half a second later. Nobody tells a limiter what waits. Every request has a deadline of two seconds behind every contestant, and http.Server ends a body after ten. Spillway has the README's configuration, the semaphore exactly the backend's slots and a wait of 100 ms at most, failsafe its defaults. Requests inside are those whose handler runs, on average, holders included."},
		{Title: "A busy machine", Text: "A run whose clients sent late (p99 above 50 ms) is made again, at most twice; if they are still late, it does not count. What is sent late comes all at once: on a busy machine arrivals have peaks, and probes are slow, that are not the service's."},
	},
}
