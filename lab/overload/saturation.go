package overload

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/burn"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/load/judge"
)

// Saturation is overload in surroundings of real services: the processors of the service
// itself, the garbage collector, and PostgreSQL.
var Saturation = experiment.Declare(saturation, saturationHelp, planOf(scarcities), Roles)

const saturationHelp = `A small HTTP service is offered 1.5 and 3 times what it can do, by clients that do not wait for each other (open loop, Poisson) and leave after a second. Five resources run short in turn:

processor: each request computes for 4 ms; the service has one processor (GOMAXPROCS=1).
around: each request computes for 1 ms around a call of 20 ms; one processor.
collector: each request makes 40,000 small allocations; one processor.
sort: each request has PostgreSQL sort rows.
hotrows: each request updates one of three rows of PostgreSQL and holds it for 3 ms.

The contestants are in front of the handler: nothing (none); golang.org/x/sync/semaphore of the right size, which is measured first, refusing at once (semaphore-try); failsafe-go's adaptive limiter (failsafe); our limiter.New(limiter.Config{}), told nothing (spillway).

Each contestant runs alone, in a process of its own. PostgreSQL needs --postgres.`

// What the service's requests use. The program has all of them.
const (
	Processor = "processor"
	Around    = "around"
	Collector = "collector"
	Sort      = "sort"
	HotRows   = "hotrows"
)

// scarcities are the scenes of this experiment.
var scarcities = slices.Concat(
	scarce(Processor, "4 ms of processor, one processor", alone),
	scarce(Around, "1 ms of processor around a call of 20 ms, one processor", alone),
	scarce(Collector, "40,000 small allocations, one processor", alone),
	scarce(Sort, "PostgreSQL, a sort", nil),
	scarce(HotRows, "PostgreSQL, three hot rows", nil),
)

// alone has a service have one processor.
func alone(s *contestant.Spec) { s.Env = append(s.Env, "GOMAXPROCS=1") }

func scarce(name, setup string, spec func(*contestant.Spec)) (out []*scene) {
	var handler Handler
	if work := computing[name]; work != nil {
		handler = Guarded(func(context.Context, Job, *Front) (Work, error) { return work(), nil })
	}
	for _, x := range []float64{1.5, 3} {
		out = append(out, &scene{
			name: name, setup: setup, handler: handler, contestants: []string{None, SemaphoreTry, Failsafe, Spillway, Spillway},
			times: x, before: []before{{lasts: 3 * time.Second}}, time: 4 * time.Second,
			program: program, does: name, database: spec == nil, front: true, spec: spec,
			clients: []int{1, 2, 4, 8, 16, 32},
			kinds:   []kind{{name: "all", parts: 1, path: "/", deadline: deadline, told: true}},
			figures: func(t *trial) map[string]float64 {
				figures := map[string]float64{capacity.Key: t.size.capacity}
				if h := t.run.Of("ok").Latency; h.Count() > 0 {
					figures[slowest.Key] = math.Round(float64(h.Quantile(.99)) / 1e6)
				}
				return figures
			},
		})
	}
	return out
}

// computing is what a request does that uses the service's own processor or collector.
var computing = map[string]func() Work{
	Processor: func() Work {
		work := burn.For(4 * time.Millisecond)
		return func(http.ResponseWriter, *http.Request) error { work(); return nil }
	},
	Around: func() Work {
		half := burn.For(time.Millisecond / 2)
		return func(_ http.ResponseWriter, r *http.Request) error {
			half()
			defer half()
			return service.Pause(r.Context(), 20*time.Millisecond)
		}
	},
	Collector: func() Work {
		return func(http.ResponseWriter, *http.Request) error {
			return json.NewEncoder(io.Discard).Encode(garbage(40_000))
		}
	},
}

// garbage allocates a list of n structs and returns a sum over it.
func garbage(n int) (sum int) {
	type node struct {
		next   *node
		values [6]int
	}
	var list *node
	for i := range n {
		list = &node{list, [6]int{i}}
	}
	for ; list != nil; list = list.next {
		sum += list.values[0]
	}
	return sum
}

// Guarded is a service whose requests each do the work, behind the contestant.
func Guarded(make func(ctx context.Context, j Job, f *Front) (Work, error)) Handler {
	return func(ctx context.Context, j Job, f *Front) (http.Handler, error) {
		work, err := make(ctx, j, f)
		if err != nil {
			return nil, err
		}
		g, err := f.Guard(j)
		if err != nil {
			return nil, err
		}
		return g.Behind(work, 0), nil
	}
}

var slowest = ledger.Extra("p99_ms", "p99 of good answers")

// named are the scenes of these names.
func named(scenes []*scene, names ...string) []*scene {
	return slices.DeleteFunc(slices.Clone(scenes), func(s *scene) bool { return !slices.Contains(names, s.name) })
}

func ofCapacity(s *scene) ledger.Term {
	return percent(ledger.Of(s.key(Spillway), goodput), ledger.Of(s.key(Spillway), capacity))
}

var saturation = ledger.Family{
	ID:    "saturation",
	Title: "A service whose processors, collector or database run short",
	Claims: []ledger.Claim{
		{ID: "overload-4", Goal: true, Title: "with its own processors short a service answers nearly all that it can do, and soon",
			Note: "What can be done is the most good answers a second of clients that ask back to back.",
			Parts: []ledger.Part{
				{ID: "processors", Title: "at least 85 % where requests compute", Subject: "goodput of Spillway/what can be done", Unit: "%", Rule: judge.AtLeast(85), Spread: 3,
					Cases: cases(named(scarcities, Processor, Around), nil, ofCapacity)},
				{ID: "collector", Title: "at least 70 % where requests allocate", Subject: "goodput of Spillway/what can be done", Unit: "%", Rule: judge.AtLeast(70), Spread: 5,
					Cases: cases(named(scarcities, Collector), nil, ofCapacity)},
				{ID: "p99", Title: "99 of 100 good answers take at most half a second", Subject: "p99 of good answers", Unit: "ms", Rule: judge.AtMost(500), Spread: 20,
					Cases: cases(named(scarcities, Processor, Around, Collector), nil, func(s *scene) ledger.Term { return ledger.Of(s.key(Spillway), slowest) })},
			}},
		{ID: "overload-5", Goal: true, Title: "in front of PostgreSQL it answers at least 95 % of what the best contestant answers",
			Note: "The semaphore is told the right size, which an operator has to guess.",
			Parts: []ledger.Part{{Subject: "goodput of Spillway/the best of the others", Unit: "%", Rule: judge.AtLeast(95), Spread: 3,
				Cases: cases(named(scarcities, Sort, HotRows), scarcities[0].contestants, func(s *scene) ledger.Term {
					return percent(ledger.Of(s.key(Spillway), goodput), s.bestOf(without(Spillway, s.contestants), goodput))
				})}}},
	},
	Columns: []ledger.Column{
		{Key: capacity.Key, Name: "what can be done, a second"}, {Key: slowest.Key, Name: "p99 of good answers, ms"},
	},
	Method: []ledger.Note{
		{Title: "What is scarce", Text: "processor: some arithmetic for 4 ms, in a process with GOMAXPROCS=1. around: half a millisecond of that before and after a sleep of 20 ms. collector: a list of 40,000 small structs, garbage after the answer. sort: PostgreSQL sorts 5,000 of its rows. hotrows: a transaction updates one of three rows and commits 3 ms later. The service has at most 60 connections of PostgreSQL."},
		{Title: "What can be done", Text: "The most good answers a second of 1, 2, 4, 8, 16 and 32 clients that ask back to back, without a contestant. The least of these numbers that reaches 95 % of it is the size of the semaphore. The loads are multiples."},
		{Title: "The load", Text: "An open loop with Poisson arrivals. Each request waits a second and says so in a header. Latency counts from the intended start. A measurement follows a warm-up under the same load. One whose clients sent late (p99 above 50 ms) is made again, at most twice; if they are still late, the measurement does not count."},
		{Title: "Processors", Text: "With one processor a handler that computes runs to its end before the next request is read. So hardly any work is in flight inside a contestant, and a limit of concurrency refuses nothing while every request is late. The clients use the other processor of the machine; with none left for them they send late."},
	},
}
