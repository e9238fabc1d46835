package patterns

import (
	"math"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/load/judge"
)

const (
	publishedUsers = 10_000
	needsServer    = "SQLite has no server that could refuse a connection, so this needs PostgreSQL: run it with --postgres URL, and without --contestant."
)

// otherCrowd says that there were not as many users as a claim speaks of.
func otherCrowd(users float64) string {
	if math.IsNaN(users) || users == publishedUsers {
		return ""
	}
	return "It is about 10,000 users: run it without --users and without --quick."
}

// onServer is a case of a contestant on PostgreSQL, which is open if it was not measured.
func onServer(e *ledger.Evidence, setup, contestant string, value func(ledger.Key) ledger.Term) ledger.Case {
	k := keyOf(setup, contestant)
	c := ledger.Case{Setup: setup + ", " + contestant, Value: value(k)}
	if !e.Has(k) {
		c.Open = needsServer
	} else if setup == Crowd {
		c.Open = otherCrowd(e.ParamOf(k, "users"))
	}
	return c
}

// crowded is H6's case.
func crowded(contestant string) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) []ledger.Case {
		return []ledger.Case{onServer(e, Crowd, contestant, func(k ledger.Key) ledger.Term { return ledger.Of(k, withoutConnection) })}
	}
}

// besideService are H8's cases: PostgreSQL decides where it was measured, and SQLite otherwise.
func besideService(onPostgres, onSQLite string) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) []ledger.Case {
		server, file := onServer(e, Neighbours, onPostgres, ofAlone), keyOf(NeighboursAlike, onSQLite)
		server.Beside = server.Open != ""
		cases := []ledger.Case{{Setup: NeighboursAlike + ", " + onSQLite, Value: ofAlone(file), Beside: !server.Beside}}
		if !server.Beside {
			cases = append(cases, server)
		}
		return cases
	}
}

// ofAlone is the neighbour's goodput in per cent of what it does alone.
func ofAlone(k ledger.Key) ledger.Term {
	return ledger.Of(k, neighbourGood).Over(ledger.Of(k.By(Nobody), neighbourGood)).Times(100)
}

// ofFair is the goodput in per cent of that which a contestant had when all was well.
func ofFair(k, fair ledger.Key) ledger.Term {
	return ledger.Of(k, ownGood).Over(ledger.Of(fair, fairGood)).Times(100)
}

// goals are the cases of one of our own figures on PostgreSQL: that of the adaptive
// service decides, the others stand beside.
func goals(setup string, value func(ledger.Key) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for _, contestant := range find(setup).contestants {
			if contestant != Nobody {
				c := onServer(e, setup, contestant, value)
				c.Beside = contestant != Adaptive
				out = append(out, c)
			}
		}
		return out
	}
}

// kept are the parts that are asked of the adaptive service under every scenario.
func kept(setup, without string, share func(ledger.Key) ledger.Term) []ledger.Part {
	critical := func(k ledger.Key) ledger.Term { return ledger.Of(k, criticalShare) }
	return []ledger.Part{
		{ID: "goodput", Title: "it keeps at least 90 % of the goodput " + without, Subject: "goodput of that " + without, Unit: "%",
			Kind: judge.Every, Rule: judge.AtLeast(90), Spread: 1, Cases: goals(setup, share)},
		{ID: "critical", Title: "at least 99 % of the critical look-ups are answered well within 2 s", Subject: "critical look-ups answered well within 2 s", Unit: "%",
			Kind: judge.Every, Rule: judge.AtLeast(99), Spread: .3, Max: 100, Cases: goals(setup, critical)},
		spared(setup),
	}
}

// spared is that no connection is refused.
func spared(setup string) ledger.Part {
	refused := func(k ledger.Key) ledger.Term { return ledger.Of(k, refusedConnections) }
	return ledger.Part{ID: "refused", Title: "PostgreSQL refuses no connection", Subject: "the count of connections that PostgreSQL refused", Kind: judge.Never,
		Rule: judge.Exactly(0), Cases: goals(setup, refused)}
}

// heldByStalled compares the goroutines that a pattern holds for stalled requests with what the claim says.
func heldByStalled(pattern, param string, times float64) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) []ledger.Case {
		k := stalledKey(pattern)
		return []ledger.Case{{Setup: Shape + ", over HTTP", Value: ledger.Of(k, stalledGoroutines).Over(ledger.Const(e.ParamOf(k, param))).Times(times)}}
	}
}

// takenByStalled is the memory of stalled requests under naive, and beside it under a pool.
func takenByStalled(e *ledger.Evidence) []ledger.Case {
	k := stalledKey(Naive)
	return []ledger.Case{
		{Setup: Shape + ", over HTTP", Value: ledger.Of(k, stalledMemory), Open: otherCrowd(e.ParamOf(k, "users"))},
		{Setup: Shape + ", over HTTP, workerpool", Value: ledger.Of(k.By(WorkerPool), stalledMemory), Beside: true},
	}
}

// poolAndOurs is a case for the published pool, which decides, and one for ours.
func poolAndOurs(setup, load string, f ledger.Figure) []ledger.Case {
	return []ledger.Case{{Setup: Shape, Value: of(setup, load, WorkerPool, f)}, {Setup: "Spillway's pool", Value: of(setup, load, Ours, f), Beside: true}}
}

// claimsOfScenarios are those about what the source tells of services without a bound.
var claimsOfScenarios = []ledger.Claim{
	{ID: "H6", Title: "10,000 users exhaust a database of 100 connections under naive, not under a pool", Published: "a scenario: 10,000 users, 100 connections; no figure",
		Note: "What becomes of naive is decided by its driver. Where each look-up opens a connection, as database/sql does unless it is told how many it may open, the database refuses all but 100. Where the driver has no more than the database allows, nobody is refused, and the last user waits for as long as the connections need for all of them. The pool spares the database, not the users: it refuses most of them itself.",
		Parts: []ledger.Part{
			{ID: "naive", Title: "under naive users get connection errors, or wait over 10 s for a connection", Subject: "the count of users without a connection within 10 s under naive", Kind: judge.Every, Rule: judge.AtLeast(1), Cases: crowded(Unprotected)},
			{ID: "pool", Title: "under a pool no request is without a connection", Subject: "the count of look-ups without a connection within 10 s under a pool", Kind: judge.Never, Rule: judge.Exactly(0), Cases: crowded(Pooled)},
		}},
	{ID: "H7", Title: "a query slowed to 30 s makes naive hold some 10,000 goroutines until memory ends, and a pool no more than its workers", Published: "a scenario: about 10,000 goroutines, until memory ends",
		Note: "333 requests a second arrive, which are 10,000 in 30 s: they wait over HTTP in a server for a store that does not answer. That there are as many goroutines as requests, and at most as many as workers, is so by construction; what is left of the claim is the memory that ends. The goroutines are those that answer; each request also has a connection's. A gibibyte is the least limit with which such a service is usually run.",
		Parts: []ledger.Part{
			{ID: "goroutines", Title: "naive's goroutines grow with every request that arrives, to 10,000 in 30 s (by construction)", Subject: "what naive holds after 30 s of it", Unit: "goroutines", Rule: judge.Within(0.10, publishedUsers), Published: []float64{publishedUsers}, Spread: 100,
				Cases: heldByStalled(Naive, "users", publishedUsers)},
			{ID: "pool", Title: "a pool never has more goroutines than workers (by construction)", Subject: "the most goroutines of a pool/its workers", Unit: "x", Kind: judge.Every, Rule: judge.AtMost(1), Cases: heldByStalled(WorkerPool, "workers", 1)},
			{ID: "memory", Title: "10,000 stalled requests take a gibibyte of memory or more", Subject: "growth of naive's resident memory by 10,000 stalled requests", Unit: "MiB", Rule: judge.AtLeast(1024), Spread: 20, Cases: takenByStalled},
		}},
	{ID: "H8", Title: "one naive service with 5,000 goroutines starves the others on its database, and a pool does not", Published: "a scenario: 5,000 goroutines; no figure",
		Note: "What two services compete for is the database's: on PostgreSQL, which decides where it was measured, connections, on SQLite the processors. So a pool spares its neighbours as long as the bounds of all services together are within what the database bears.",
		Parts: []ledger.Part{
			{ID: "naive", Title: "beside a naive service the neighbour does less than half of what it does alone", Subject: "the neighbour's goodput beside naive, of what it does alone,", Unit: "%", Rule: judge.Below(50), Spread: 2, Cases: besideService(Unprotected, Unqueued)},
			{ID: "pool", Title: "beside a pool the neighbour does 90 % of what it does alone, or more", Subject: "the neighbour's goodput beside a pool, of what it does alone,", Unit: "%", Rule: judge.AtLeast(90), Spread: 2, Cases: besideService(Pooled, Pooled)},
		}},
	{ID: "H6-adaptive", Goal: true, Title: "10,000 users at once cost an adaptive service on 100 connections less than a tenth of its goodput, and no critical look-up",
		Note:  "The goodput without them is what as many clients as there are connections get from a pool that was told their number. A user who is refused asks again after one to one and a half seconds, and then after two to three, or when Retry-After says so if that is later. Fifty look-ups a second are critical.",
		Parts: kept(Crowd, "of all connections without the crowd", func(k ledger.Key) ledger.Term { return ofFair(k, k.By(Told)) })},
	{ID: "H7-adaptive", Goal: true, Title: "a query that hangs for 30 s costs an adaptive service less than a tenth of its other goodput, and no critical look-up",
		Note:  "One request of 33 asks for a table that somebody else has locked. The service ends such a query at its deadline of 5 s, so that fifty of them hang at a time, with half of the connections. The goodput is of all other requests, and is compared with that of the unprotected service before; a fifth of all are critical.",
		Parts: kept(Lock, "that there is without the lock", func(k ledger.Key) ledger.Term { return ofFair(k, k.By(Unqueued)) })},
	{ID: "H8-adaptive", Goal: true, Title: "beside an adaptive service with 5,000 clients its neighbour does at least 95 % of what it does alone",
		Note: "The neighbour has a pool of 20 connections, the adaptive service may open 75: 100 belong to the role of both.",
		Parts: []ledger.Part{
			{ID: "neighbour", Title: "the neighbour does at least 95 % of what it does alone", Subject: "the neighbour's goodput of what it does alone", Unit: "%",
				Rule: judge.AtLeast(95), Spread: 1, Cases: goals(Neighbours, ofAlone)},
			spared(Neighbours),
		}},
}

var claimOfShutdown = ledger.Claim{ID: "H12", Title: "closing the queue, draining and then shutting down loses nothing", Published: "a rule, no figure",
	Note: "The published shutdown closes the queue and, at the same moment, tells the workers to stop. A worker that is done has two reasons to go on, an entry of the queue and the word to stop, and Go chooses one at random: it takes one more request on average. Nobody tells the callers of the rest, which wait as long as they may, and the shutdown reports success.",
	Parts: []ledger.Part{{Subject: "the count of accepted requests without an answer, of 120 at a shutdown,", Kind: judge.Never, Rule: judge.Exactly(0),
		Cases: ledger.Only(poolAndOurs(Shutdown, allFull, lostRequests)...)}},
}

var claimOfLongLived = ledger.Claim{ID: "H14", Title: "a worker pool serves for long-lived connections, such as WebSockets, too", Published: "a recommendation, no figure",
	Note: "A connection keeps its worker for as long as it is open. With as many of them as workers nothing else is done, whatever the queue holds: that is what the recommendation leaves out.",
	Parts: []ledger.Part{{Subject: "the count of short requests answered within a second, of 10 beside a long-lived connection for each worker,", Kind: judge.Every, Rule: judge.AtLeast(shortRequests),
		Cases: ledger.Only(append(poolAndOurs(LongLived, allBusy, shortAnswered), ledger.Case{Setup: Shape + ", naive", Value: of(LongLived, allBusy, Naive, shortAnswered), Beside: true})...)}},
}
