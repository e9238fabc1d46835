package overload

import (
	"fmt"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
	"github.com/spillway-go/spillway/load/loadgen"
)

// Mixes puts work of several lengths, each with its own deadline, in front of a real database,
// and asks what becomes of each kind.
var Mixes = experiment.Declare(mixed, mixesHelp, planOf(mixes), Roles)

const mixesHelp = `A small HTTP service answers each request by one query of a database, which computes a sum from memory. Requests are of several kinds: each has its length and its deadline, which it says in a header. They come in an open loop, Poisson, at a multiple of what the database can do.

lookups: nine lookups of 1 ms, which wait a second, to one report of 100 ms, which waits ten seconds; at 0.6 and 1.5 times what the database can do.

lengths: six kinds of 1 to 200 ms, which wait 250 ms to five seconds; at 0.4 and 1.5 times.

At 1.5 times what it can do a queue grows by half a second each second, and who waits ten seconds is late after twenty. A surge comes first, of five times what the database can do, until a service without a limit has a queue as long as the most patient wait.

The contestants bound the query by: nothing (none); golang.org/x/sync/semaphore of the right size, which is measured first, with a wait of 200 ms (semaphore); failsafe-go's adaptive limiter (failsafe); our limiter.New(limiter.Config{}), told nothing (spillway). The database is SQLite, in the service's own process, and PostgreSQL, if --postgres names one.

The scenes are sqlite-lookups, sqlite-lengths, postgres-lookups and postgres-lengths.

Each contestant runs alone, in a process of its own, in a new order each repeat, and all of a repeat get the same requests. --quick --repeats 1 shows each of them once within two minutes.`

// The databases. The program has services that answer by a sum over the rows of one of them.
const (
	SQLite     = "SQLite"
	PostgreSQL = "PostgreSQL"
)

// surge is the load that comes first above the capacity: until the most patient would wait for as long as
// they do. Such a queue would come by itself, many seconds later.
const surge = 5

var (
	lookups = []kind{
		{name: "lookups of 1 ms", length: 1, deadline: time.Second, parts: 9},
		{name: "reports of 100 ms", length: 100, deadline: 10 * time.Second, parts: 1},
	}
	lengths = []kind{
		{name: "1 ms", length: 1, deadline: 250 * time.Millisecond, parts: 7},
		{name: "3 ms", length: 3, deadline: 500 * time.Millisecond, parts: 5},
		{name: "8 ms", length: 8, deadline: time.Second, parts: 3},
		{name: "25 ms", length: 25, deadline: 2 * time.Second, parts: 2},
		{name: "70 ms", length: 70, deadline: 3 * time.Second, parts: 2},
		{name: "200 ms", length: 200, deadline: 5 * time.Second, parts: 1},
	}
	mixes = slices.Concat(
		mix("sqlite-lookups", SQLite, "lookups beside reports", .6, lookups), mix("sqlite-lengths", SQLite, "six lengths", .4, lengths),
		mix("postgres-lookups", PostgreSQL, "lookups beside reports", .6, lookups), mix("postgres-lengths", PostgreSQL, "six lengths", .4, lengths),
	)
)

// mix is a scene below the capacity, and one above it. Spillway is measured twice where it has to refuse.
func mix(name, engine, words string, below float64, kinds []kind) []*scene {
	under := scene{
		name: name, setup: engine + ", " + words, contestants: []string{None, Semaphore, Failsafe, Spillway}, kinds: slices.Clone(kinds),
		times: below, before: []before{{lasts: 2 * time.Second}}, time: 4 * time.Second,
		program: program, does: engine, database: engine == PostgreSQL, wait: 200 * time.Millisecond,
		clients: []int{1, 2, 4, 8, 16}, calibrate: rowsOf, each: mixRuns,
	}
	for i := range under.kinds {
		under.kinds[i].told = true
	}
	under.tail = under.longest() + patience
	over := under
	over.times, over.contestants = 1.5, append(slices.Clone(under.contestants), Spillway)
	over.before = slices.Concat([]before{{times: surge, lasts: under.longest() / (surge - 1), steady: true}}, under.before)
	over.busy = func(contestant string) bool { return contestant == None } // whose queries take the processors from its clients, too: that is a result
	return []*scene{&under, &over}
}

// sumsPath asks for a sum over so many rows, so many times over.
func sumsPath(rows, passes int) string { return fmt.Sprintf("/sums?rows=%d&passes=%d", rows, passes) }

// rowsOf is how many rows the database sums up in a millisecond, alone: by the middle one of
// several queries.
func rowsOf(t *trial) (int, error) {
	const rows, passes, times = 2_000, 20, 9
	target, err := t.sender(kind{path: sumsPath(rows, passes), deadline: time.Minute, told: true})
	if err != nil {
		return 0, err
	}
	defer target.Close()
	var took []time.Duration
	for range times {
		began := time.Now()
		if got := target.Do(t.srv.Loading, 0); got != loadgen.OK {
			return 0, fmt.Errorf("the first query ended as %v: %w", got, target.FirstError())
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return min(max(int(rows*passes*float64(time.Millisecond)/float64(took[times/2])), 1), Events/2), nil
}

// mixRuns are what a load says of all kinds, and of each.
func mixRuns(t *trial) []results.Run {
	out := []results.Run{t.run}
	offered, done, requests, work := 0., 0., 0, 0 // milliseconds of work
	for i, k := range t.scene.kinds {
		run := t.ofKind(i)
		out = append(out, run)
		offered += float64(run.Offered) * float64(k.length)
		done += float64(run.Of("ok").Count) * float64(k.length)
		requests, work = requests+k.parts, work+k.parts*k.length
	}
	fair := min(t.size.capacity*float64(work)/float64(requests)*t.run.Elapsed/offered, 1)
	for i := range out {
		out[i].Extra = map[string]float64{}
		if out[i].Offered > 0 {
			answered := 100 * out[i].Share("ok")
			out[i].Extra[answeredInTime.Key], out[i].Extra[ofFair.Key] = answered, answered/fair
		}
	}
	delete(out[0].Extra, ofFair.Key)
	out[0].Extra[workDone.Key] = done / t.run.Elapsed
	return out
}

// The figures. A contestant that was killed has done what it had until then, of the whole
// measurement.
var (
	answeredInTime = ledger.Extra("in_time", "share answered in time")
	ofFair         = ledger.Extra("of_fair", "share of its fair share")
	workDone       = ledger.Figure{Key: "work", Name: "work done in time", OfKilled: true}
)

// loaded are the mixes below the capacity, or above it.
func loaded(below bool) []*scene {
	return slices.DeleteFunc(slices.Clone(mixes), func(s *scene) bool { return s.times < 1 != below })
}

// eachKind is a case for each kind of each mix; of a mix that was not run, its first kind stands for all.
func eachKind(below bool, needed []string, value func(all ledger.Key, k kind) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for _, s := range loaded(below) {
			all, open := s.key(Spillway), s.missing(e, needed...)
			for i, k := range s.kinds {
				c := ledger.Case{Setup: all.Setup + ", " + of(all, k).Load, Value: value(all, k), Open: open}
				if open != "" {
					c.Setup = all.Setup + ", " + all.Load
				}
				if open == "" || i == 0 {
					out = append(out, c)
				}
			}
		}
		return out
	}
}

var mixed = ledger.Family{
	ID:    "mixes",
	Title: "Work of several lengths, each with its own deadline, in front of a real database",
	Claims: []ledger.Claim{
		{ID: "mixes-1", Goal: true, Title: "below the capacity a limiter that is told nothing loses no more than three points of any kind of work",
			Note: "A point is a hundredth of the requests of the kind. It is compared with no limit at all, which got the same requests.",
			Parts: []ledger.Part{{Subject: "the share lost against no limit", Unit: "points", Rule: judge.AtMost(3), Spread: .5, Min: -100, Max: 100,
				Cases: eachKind(true, []string{None}, func(all ledger.Key, k kind) ledger.Term {
					return ledger.Of(of(all.By(None), k), answeredInTime).Minus(ledger.Of(of(all, k), answeredInTime))
				})}}},
		{ID: "mixes-2", Goal: true, Title: "at one and a half times the capacity as much work is done in time as behind the best of the others, and no kind of it is starved",
			Note: "Work is counted in milliseconds that it takes alone: of what is offered, the part that was answered before its deadline. The fair share of every kind is the same: the work that the database can do of the work that was offered.",
			Parts: []ledger.Part{
				{ID: "work", Title: "it does at least 90 % of the work of the best of the others", Subject: "work done in time, Spillway/the best of the others", Unit: "x", Rule: judge.AtLeast(.9), Spread: .03,
					Cases: cases(loaded(false), mixes[0].contestants, func(s *scene) ledger.Term {
						return ledger.Of(s.key(Spillway), workDone).Over(s.bestOf(without(Spillway, s.contestants), workDone))
					})},
				{ID: "share", Title: "every kind gets at least 60 % of its fair share", Subject: "the part of its fair share that the kind gets", Unit: "%", Rule: judge.AtLeast(60), Spread: 2,
					Cases: eachKind(false, nil, func(all ledger.Key, k kind) ledger.Term { return ledger.Of(of(all, k), ofFair) })},
			}},
	},
	Columns: []ledger.Column{
		{Key: answeredInTime.Key, Name: "answered in time, %", Format: "decimals"}, {Key: ofFair.Key, Name: "of its fair share, %", Format: "decimals"},
		{Key: workDone.Key, Name: "work in time, ms a second"},
	},
	Method: []ledger.Note{
		{Title: "The work", Text: "One query a request: the sum and the number of the values of some rows at a random place of a table of 100,000, as many times over as the kind is milliseconds long. How many rows a millisecond makes is measured first, by one client. All of it is in memory: what is scarce is the processor, which the service, its clients and PostgreSQL share. The service has at most 95 connections or readers of a SQLite file open, whatever bounds it: a query more waits for one until its deadline, without a limit too."},
		{Title: "The capacity", Text: "Of 1, 2, 4, 8 and 16 clients that ask back to back, for the kinds in turn and without a limit, the most good answers a second are the capacity, and the smallest number within 5 % of that is the right size of the semaphore. The loads are multiples of that capacity."},
		{Title: "The load", Text: "An open loop with Poisson arrivals, of which each draws its kind. All contestants get the same requests in a repeat. A measurement follows a warm-up under the same load, and the load goes on until the last request that counts has its outcome, so that none is answered late by a database that has nothing else to do. At 1.5 times the capacity a queue grows by half a second each second, and a report that waits ten seconds is late only after twenty; before that a service without a limit seems to do everything. So a surge comes before the warm-up, of five times the capacity, which makes that queue in a quarter of the longest deadline; contestants that refuse have no queue of it. One whose clients sent late (p99 above 50 ms) is made again, at most twice; if they are still late, it does not count. Without a limit and above the capacity it always counts: queries then take the processors from the clients, too."},
		{Title: "Outcomes", Text: "Good is an answer within the deadline of its kind, since the request was sent, a timeout one that came later or never, refused what the contestant sent away. Latency counts from the intended start."},
		{Title: "What is not measured", Text: "A measurement of some seconds offers the longest kind some ten times, of which one is ten points: what a repeat says about that kind is coarse, and the middle one of the repeats counts. Spillway runs twice at one and a half times the capacity: its difference from itself is the noise floor there. A database on a machine of its own, a disk that is waited for and writes are not in it."},
	},
}
