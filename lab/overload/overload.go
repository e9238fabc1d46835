package overload

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/load/judge"
)

// Experiment is a patient API that is offered up to ten times what it can do.
var Experiment = experiment.Declare(family, help, planOf(loads), Roles)

// Roles are the contestants of all these experiments that this program plays itself.
var Roles = map[string]contestant.Role{
	RoleService: contestant.Server(func(ctx context.Context, j Job, ready contestant.Ready) (*service.Served, error) {
		return Serve(ctx, j, ready, nil, nil)
	}),
	roleAttackers: contestant.Server(attackers),
}

// allScenes are those of all experiments.
var allScenes []*scene

func init() {
	allScenes = slices.Concat(loads, scarcities, admissions, stories, mixes, databases)
}

const help = `The patient API over HTTP and SQLite, in a process of its own, is offered 0.5 to 10 times what it can do, by clients that do not wait for each other (open loop, Poisson). Each waits a second for its answer and says so in a header; a fifth of the requests is critical and says so too. The bottleneck is a database with a knee: ten lookups at a time run at full speed, some 250 a second; beyond that they share it, and the sharing costs, so that four times too many halve the total.

The contestants bound the lookup by: nothing (none); golang.org/x/sync/semaphore of exactly the right size, waiting as long as the deadline allows (semaphore) or refusing at once (semaphore-try), and four times too large (semaphore-4x); our worker pool of the right size (workerpool); failsafe-go's adaptive limiter with priorities (failsafe); our limiter.New(limiter.Config{}), told nothing (spillway).

The scenes are the loads: 0.5x, 0.9x, 1.5x, 2x, 5x and 10x.`

// Patients is what the service of this experiment does: the patient API, whose lookups wait for the model of a
// database. The service is in a program of its own, for it imports SQLite.
const Patients = "patients"

const (
	PatientCount = 10_000      // in the SQLite file
	deadline     = time.Second // of each request
)

func patientOf(n uint64) string { return fmt.Sprintf("P%06d", 1+n*7919%PatientCount) }

// loads are the scenes of this experiment. Nearly all of a lookup is waiting: what is offered nine
// times the capacity takes, with its clients, about one processor, and what is offered the
// capacity a fifth of one, because answers cost more than refusals.
var loads = func() (out []*scene) {
	for _, x := range []float64{0.5, 0.9, 1.5, 2, 5, 10} {
		out = append(out, &scene{
			name: multiple(x), title: "at " + multiple(x), setup: "patient API over HTTP and SQLite", contestants: append(Names(), Spillway),
			times: x, before: []before{{lasts: 2 * time.Second}}, time: 3 * time.Second, crowded: (x + 1) / 10,
			program: program, does: Patients, slots: usual.Slots,
			clients: []int{10, 12, 14, 10, 12, 14}, // twice, for a disturbance makes the figure smaller, never larger
			kinds: []kind{
				{name: "ordinary", parts: 4, deadline: deadline, told: true},
				{name: "critical", parts: 1, deadline: deadline, told: true, header: map[string]string{admissionhttp.HeaderPriority: "critical"}},
			},
			figures: func(t *trial) map[string]float64 {
				critical := t.ofKind(1)
				return map[string]float64{
					capacity.Key: t.size.capacity, criticalSent.Key: float64(critical.Offered) / t.run.Elapsed, criticalOK.Key: float64(critical.Of("ok").Count) / t.run.Elapsed,
				}
			},
		})
	}
	return out
}()

// The figures.
var (
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
				Cases: func(e *ledger.Evidence) []ledger.Case {
					possible := ledger.Best(e.All(goodput, func(ledger.Key) bool { return true })...)
					return cases(loads, Names(), func(s *scene) ledger.Term {
						k := s.key(Spillway)
						return ledger.Of(k, goodput).Over(ledger.Smallest(possible, ledger.Of(k, offered)))
					})(e)
				}}}},
		{ID: "overload-2", Goal: true, Title: "at least 99 % of the critical requests are answered well, as far as they fit",
			Note: "A fifth of the requests is critical. At ten times the capacity that alone is twice what the service can do, at five times exactly as much; there the share is of the capacity.",
			Parts: []ledger.Part{{Subject: "critical requests answered well", Unit: "%", Rule: judge.AtLeast(99), Spread: 0.3, Max: 100,
				Cases: cases(loads, nil, func(s *scene) ledger.Term {
					of := func(f ledger.Figure) ledger.Term { return ledger.Of(s.key(Spillway), f) }
					return ledger.Smallest(percent(of(criticalOK), ledger.Smallest(of(criticalSent), of(capacity))), ledger.Const(100))
				})}}},
		{ID: "overload-3", Goal: true, Title: "no contestant answers over 5 % more",
			Note: "Three of the rivals were told the size of the database, which an operator has to guess; one of these is our own worker pool.",
			Parts: []ledger.Part{{Subject: "goodput of the best rival/Spillway", Unit: "x", Rule: judge.AtMost(1.05), Spread: 0.03,
				Cases: cases(loads, Names(), func(s *scene) ledger.Term {
					return s.bestOf(without(Spillway, Names()), goodput).Over(ledger.Of(s.key(Spillway), goodput))
				})}}},
	},
	Method: []ledger.Note{
		{Title: "What is scarce", Text: "A database with a knee, in front of SQLite: ten lookups at a time run at full speed, 20 to 60 ms each. Beyond that they share it, and the sharing costs: with c of them running the total falls to √(10/c), so that forty do half of what ten do. It refuses nothing and reports nothing. A caller that leaves takes its lookup along."},
		{Title: "The load", Text: "An open loop with Poisson arrivals: clients that do not wait for each other. The capacity is measured first, in a closed loop around the database's slots. Every request waits a second and says so in a header that becomes the context's deadline; a fifth is critical and says so too. Latency counts from the intended start. Each measurement follows a warm-up under the same load. One whose clients sent late (p99 above 50 ms), because the machine was busy elsewhere, is made again, at most twice; if they are still late, it does not count."},
		{Title: "What the contestants know", Text: "semaphore, semaphore-try and workerpool were given the size of the database, which an operator has to guess; semaphore-4x is the same guess, four times off. failsafe and spillway have no such number. semaphore waits as long as the deadline allows, first come, first served; semaphore-try refuses at once. workerpool and spillway are ours."},
		{Title: "Side by side", Text: "As many contestants run at the same time, each in its own process, as the processors bear: on two processors all of them up to one and a half times the capacity, six at twice it, three at five times it, and one at ten times it. Nearly all of a lookup is waiting, so that they do not compete. Spillway runs twice under every load: its difference from itself is the noise floor."},
	},
}
