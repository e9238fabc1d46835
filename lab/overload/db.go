package overload

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/postgres"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

// Databases puts a limiter without any number in front of real databases, beside pools of every
// size, and measures what audit costs there.
var Databases = experiment.Declare(realDatabases, databasesHelp, planOf(databases), Roles)

const databasesHelp = `Clients ask a database back to back for sums over some thousand rows, which it computes from memory. As many queries run at one time as a pool of connections has, of 1 to 64, or as our limiter.New(limiter.Config{}) finds out, which is told nothing. The database is SQLite, in the contestant's own process, and PostgreSQL, if --postgres names one.

After some seconds each query becomes four times as dear. Throughput and the time that a query takes in the database are measured before that, and from five seconds after it.

Then the whole patient API is loaded over each of them with and without audit, which puts every access on record before it is answered, and is overloaded with it: is any answer without a record?

Every contestant runs in a process of its own, one after the other in a new order each repeat. The services with and without audit run side by side and are loaded in short turns.

The scenes are sqlite-pools, postgres-pools, sqlite-audit and postgres-audit.`

// databases are the scenes of this experiment, which are measured in ways of their own.
var databases = []*scene{pools("sqlite-pools", SQLite), pools("postgres-pools", PostgreSQL), audits("sqlite-audit", SQLite), audits("postgres-audit", PostgreSQL)}

var sizes = []int{1, 2, 4, 8, 16, 32, 64}

// RoleBout is what the program plays: it takes a Bout and returns a map of figures.
const RoleBout = "db-bout"

// Bout is the input of a contestant.
type Bout struct {
	Engine                string
	URL                   string // of PostgreSQL's database
	Pool                  int    // 0: the limiter without a number
	Clients, Rows         int
	WarmUp, Settle, Timed time.Duration
	Seed                  uint64
}

// Events is how many rows the table has.
func (b Bout) Events() int { return 25 * b.Rows }

// Dearer is how many rows a query sums up after the change.
func (b Bout) Dearer() int { return 4 * b.Rows }

func poolOf(n int) string { return fmt.Sprintf("pool of %d", n) }

// pools is the scene that compares the limiter with all pools over one database.
func pools(name, engine string) *scene {
	s := &scene{name: name, setup: engine, load: "clients back to back", program: program, role: RoleBout, database: engine == PostgreSQL}
	for _, n := range sizes {
		s.contestants = append(s.contestants, poolOf(n))
	}
	s.contestants = append(s.contestants, Spillway, Spillway)
	s.group = func(m *session) experiment.Group {
		keys := m.keys(s)
		g := experiment.Group{Keys: keys, Label: engine + " · all pools, and the limiter", Run: func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
			return m.compare(ctx, s, keys, t.Seed)
		}}
		for _, k := range keys {
			b := m.bout(engine, k.Pattern, 0)
			g.Expect += b.WarmUp + b.Settle + 2*b.Timed + time.Second/2
		}
		return g
	}
	return s
}

// bout is that of a contestant. A pool needs no time, for it has nothing to find out.
func (m *session) bout(engine, name string, seed uint64) Bout {
	b := Bout{Engine: engine, Clients: 64, Rows: 4000, WarmUp: lasts(m.Pace, 4*time.Second), Settle: lasts(m.Pace, 5*time.Second), Timed: lasts(m.Pace, 1500*time.Millisecond), Seed: seed}
	for _, n := range sizes {
		if name == poolOf(n) {
			b.Pool, b.WarmUp, b.Settle = n, lasts(m.Pace, 300*time.Millisecond), lasts(m.Pace, 300*time.Millisecond)
		}
	}
	return b
}

// order is a random one of so many.
func order(n int, seed uint64) []int { return rand.New(rand.NewPCG(seed, 4)).Perm(n) }

// compare measures every contestant over one database, in a random order.
func (m *session) compare(ctx context.Context, s *scene, keys []ledger.Key, seed uint64) (runs []results.Run, err error) {
	url := ""
	if s.database {
		database, err := m.open(ctx, postgres.Population{Events: m.bout(s.setup, Spillway, 0).Events()})
		if err != nil {
			return nil, err
		}
		defer func() { err = cmp.Or(err, database.Close()) }()
		url = database.URL
	}
	runs = make([]results.Run, len(keys))
	for _, i := range order(len(keys), seed) {
		b := m.bout(s.setup, keys[i].Pattern, seed)
		b.URL = url
		run := experiment.Alone(contestant.Spec{Program: program, Role: RoleBout, Input: b})
		if runs[i], err = run(ctx, experiment.Trial{Seed: seed}); err != nil {
			return nil, err
		}
		runs[i].Params = map[string]any{"pool": b.Pool, "pace": m.Pace, "clients": b.Clients}
	}
	return runs, nil
}

// The figures, before queries became dearer and after it.
var phases = []struct {
	words      string
	rate, time ledger.Figure
}{
	{"before the change", ledger.Extra("before", "queries a second"), ledger.Extra("p99_before", "p99 of a query")},
	{"from 5 s after it", ledger.Extra("after", "queries a second after the change"), ledger.Extra("p99_after", "p99 of a query after the change")},
}

// same is by how much two pools may differ and count as equally good: then the smaller is
// the best.
const same = 0.05

// best is the pool with the most queries a second in most repeats.
func best(e *ledger.Evidence, s *scene, rate ledger.Figure) ledger.Key {
	most, chosen := 0., s.key(poolOf(1))
	for _, k := range e.Keys(func(k ledger.Key) bool { return k.Setup == s.setup && k.Pattern != Spillway }) {
		var all []float64
		for _, r := range e.Runs(k) {
			if x, ok := r.Extra[rate.Key]; ok {
				all = append(all, x)
			}
		}
		if x := ledger.Median(all); x > most*(1+same) {
			most, chosen = x, k
		}
	}
	return chosen
}

// against compares the limiter with the best pool of each database, before the change and
// after it.
func against(figure func(rate, time ledger.Figure) ledger.Figure) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for _, s := range databases[:2] {
			for _, p := range phases {
				us, them := s.key(Spillway), best(e, s, p.rate)
				f := figure(p.rate, p.time)
				c := ledger.Case{Setup: s.setup + ", " + p.words, Value: ledger.Of(us, f).Over(ledger.Of(them, f)), Remark: "The best pool was the " + them.Pattern + ".", Open: s.missing(e)}
				if c.Open != "" {
					c.Remark = ""
				} else if e.ParamOf(us, "pace") > 1 {
					c.Open = "The goal gives it 5 s: run it without --pace."
				}
				out = append(out, c)
			}
		}
		return out
	}
}

var realDatabases = ledger.Family{
	ID:    "db",
	Title: "A limiter that is told nothing, in front of real databases, beside pools of every size",
	Claims: []ledger.Claim{
		{ID: "engine-4", Goal: true, Title: "a limiter without a number does as well in front of SQLite and PostgreSQL as the best pool of connections, and again within 5 s of a change",
			Note: "Of pools that differ by less than 5 % in throughput the smallest counts as the best: that is how well a pool repeats itself. The time is that of a query in the database, from its admission on: what a client waits besides follows from the number of clients and the throughput.",
			Parts: []ledger.Part{
				{ID: "throughput", Title: "it does at least 90 % of the best pool's queries", Subject: "queries a second, Spillway/the best pool", Unit: "x", Rule: judge.AtLeast(.9), Spread: .03,
					Cases: against(func(rate, _ ledger.Figure) ledger.Figure { return rate })},
				{ID: "p99", Title: "the p99 of a query is at most 1.25 times the best pool's", Subject: "p99 of a query, Spillway/the best pool", Unit: "x", Rule: judge.AtMost(1.25), Spread: .05,
					Cases: against(func(_, time ledger.Figure) ledger.Figure { return time })},
			}},
		{ID: "audit-1", Goal: true, Title: "audit costs at most a tenth of what the service can answer, and overload loses no record",
			Note: "A record is committed and synced before the answer leaves, with those of all others that came meanwhile.",
			Parts: []ledger.Part{
				{ID: "throughput", Title: "with audit it answers at least 90 % as much", Subject: "good answers a second with audit/without", Unit: "x", Rule: judge.AtLeast(.9), Spread: .03,
					Cases: overEach(func(e *ledger.Evidence, s *scene) ledger.Term {
						return ledger.Best(ofAudit(e, s, Audit, answers)...).Over(ledger.Best(ofAudit(e, s, Unaudited, answers)...))
					})},
				{ID: "records", Title: "no answer is without a record, refusals among them", Subject: "the count of answers without a record", Kind: judge.Never, Rule: judge.Exactly(0),
					Cases: overEach(func(e *ledger.Evidence, s *scene) ledger.Term {
						return ledger.Largest(append(ofAudit(e, s, Audit, unrecorded), ofAudit(e, s, Flooded, unrecorded)...)...)
					})},
			}},
	},
	Columns: []ledger.Column{
		{Key: answers.Key, Name: "good answers/s"}, {Key: unrecorded.Key, Name: "answers without a record"}, {Key: "commits", Name: "commits"},
		{Key: "before", Name: "queries/s"}, {Key: "p99_before", Name: "p99 of a query", Format: "nanos"}, {Key: "limit_before", Name: "at a time", Format: "decimals"},
		{Key: "after", Name: "queries/s when dearer"}, {Key: "p99_after", Name: "p99 of a query when dearer", Format: "nanos"}, {Key: "limit_after", Name: "at a time when dearer", Format: "decimals"},
		{Key: "refused", Name: "refused"},
	},
	Method: []ledger.Note{
		{Title: "The query", Text: "The sum and the number of the values of each of seven kinds, over some thousand rows at a random place of a table of 100,000, by its primary key. All of it is in memory: what is scarce is the processor, which a database shares with its clients. Each contestant has 95 connections open, or 64 readers of a SQLite file, and decides how many of them are used at a time."},
		{Title: "A closed loop", Text: "64 clients ask back to back, and wait for their turn as long as it takes. A client that the limiter refuses asks again when it is told to."},
		{Title: "The change", Text: "From one moment on each query sums up four times as many rows. A pool is measured 0.3 s after its start and after the change, for it has nothing to find out; the limiter after its warm-up, and 5 s after the change."},
		{Title: "Audit", Text: "The service is run by its own command, without added latency or errors: what is scarce is the processor, on which the load generator runs as well. Clients read one patient after the other, back to back, with a verified token; without a bound, so that only audit differs, and of the numbers of clients the one with the most answers counts, for each on its own: with audit it takes more of them. The service with audit and two without it run side by side, and are loaded one at a time, in turns of some 750 ms and a new order each round: what else the machine and its disk do meets all of them. Overloaded, the service is adaptive and has three times as many clients. Its records are then read again: those that are in a chain without a fault are compared with what the service has answered. Beside SQLite they are in a file of their own, beside PostgreSQL in the same database."},
		{Title: "Noise", Text: "The limiter runs twice in every repeat: what it differs from itself is the noise floor, as is what the service without audit differs from itself."},
	},
}
