package patterns

import (
	"math"
	"slices"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/load/judge"
)

// decided are the cases of a part for a model of a database, and those on a real one. Where
// the real one was measured it decides, and the model stands beside it.
func decided(model func(*ledger.Evidence) []ledger.Case, real ...ledger.Case) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		measured := slices.ContainsFunc(real, func(c ledger.Case) bool { return !c.Beside && slices.ContainsFunc(c.Value.Keys(), e.Has) })
		for _, c := range model(e) {
			if measured {
				c.Beside, c.Open = true, ""
			} else if !c.Beside {
				c.Remark = aModel
			}
			out = append(out, c)
		}
		if measured {
			out = append(slices.Clone(real), out...)
		}
		return out
	}
}

const aModel = "NOT A REAL DATABASE: this was a model of one, in the contestant's own process; spillway lab H --postgres URL measures PostgreSQL."

// shapeAndOurs is a case for the published pool, which decides, and one for ours.
func shapeAndOurs(setup string, value func(ledger.Key) ledger.Term) []ledger.Case {
	return []ledger.Case{
		{Setup: Shape, Value: value(keyOf(setup, WorkerPool))},
		{Setup: "Spillway's pool", Value: value(keyOf(setup, Ours)), Beside: true},
	}
}

// crowded opens the cases if there were not as many users as the claim speaks of.
func crowded(cases ...ledger.Case) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for _, c := range cases {
			c.Open = otherCrowd(e.Param("users"))
			out = append(out, c)
		}
		return out
	}
}

// otherCrowd says that there were not as many users as a claim speaks of.
func otherCrowd(users float64) string {
	if math.IsNaN(users) || users == publishedUsers {
		return ""
	}
	return "It is about 10,000 users: run it without --users and without --quick."
}

const publishedUsers = 10_000

func unconnected(k ledger.Key) ledger.Term { return ledger.Of(k, withoutConnection) }

// grown is what naive holds after 30 s, by what it gains with each request.
func grown(k ledger.Key) ledger.Term { return ledger.Of(k, growth).Times(heldByThen) }

// heldByPools compares the most goroutines of a pool with its workers.
func heldByPools(e *ledger.Evidence) []ledger.Case {
	held := func(k ledger.Key) ledger.Term {
		return ledger.Of(k, mostGoroutines).Over(ledger.Const(e.ParamOf(k, "workers")))
	}
	return decided(ledger.Only(shapeAndOurs(Stall, held)...), ofReal(RealStall, Pooled, held))(e)
}

// ofAlone is the neighbour's goodput in per cent of what it does alone.
func ofAlone(k ledger.Key) ledger.Term {
	return ledger.Of(k, neighbourGood).Over(ledger.Of(k.By(Nobody), neighbourGood)).Times(100)
}

var claimOfCrowd = ledger.Claim{ID: "H6", Title: "10,000 users exhaust a database of 100 connections under naive, not under a pool", Published: "a scenario: 10,000 users, 100 connections; no figure",
	Note: "What becomes of naive is decided by its driver. Where each look-up opens a connection, as database/sql does unless it is told how many it may open, the database refuses all but 100. Where the driver has no more than the database allows, nobody is refused, and the last user waits for as long as the connections need for all of them. The pool spares the database, not the users: it refuses most of them itself.",
	Parts: []ledger.Part{
		{ID: "naive", Title: "under naive users get connection errors, or wait over 10 s for a connection", Subject: "the count of users without a connection within 10 s under naive", Kind: judge.Every, Rule: judge.AtLeast(1),
			Cases: decided(crowded(ledger.Case{Setup: Shape, Value: unconnected(keyOf(Crowd, Naive))},
				ledger.Case{Setup: Shape + ", queueing for the driver's 100 connections", Value: unconnected(keyOf(Crowd, Queueing)), Beside: true}), ofReal(RealCrowd, Unprotected, unconnected))},
		{ID: "pool", Title: "under a pool no request is without a connection", Subject: "the count of look-ups without a connection within 10 s under a pool", Kind: judge.Never, Rule: judge.Exactly(0),
			Cases: decided(crowded(shapeAndOurs(Crowd, unconnected)...), ofReal(RealCrowd, Pooled, unconnected))},
	},
}

var claimOfStall = ledger.Claim{ID: "H7", Title: "a query slowed to 30 s makes naive hold some 10,000 goroutines until memory ends, and a pool no more than its workers", Published: "a scenario: about 10,000 goroutines, until memory ends",
	Note: "333 requests a second arrive, which are 10,000 in 30 s. That there are as many goroutines as requests, and at most as many as workers, is so by construction; what is left of the claim is the memory that ends. The goroutines are those that answer; each request also has a caller, which in a server is another one. The service is watched in real time for as long as --watch says, and what it gains with each request is extended to the 30 s. For the memory 10,000 requests over HTTP wait in a server for a store that does not answer; a gibibyte is the least limit with which such a service is usually run.",
	Parts: []ledger.Part{
		{ID: "goroutines", Title: "naive's goroutines grow with every request that arrives, to 10,000 in 30 s (by construction)", Subject: "what naive holds after 30 s of it", Unit: "goroutines", Rule: judge.Within(0.10, heldByThen), Published: []float64{heldByThen}, Spread: 100,
			Cases: decided(ledger.One(Shape, grown(keyOf(Stall, Naive))), ofReal(RealStall, Unqueued, grown))},
		{ID: "pool", Title: "a pool never has more goroutines than workers (by construction)", Subject: "the most goroutines of a pool/its workers", Unit: "x", Kind: judge.Every, Rule: judge.AtMost(1), Cases: heldByPools},
		{ID: "memory", Title: "10,000 stalled requests take a gibibyte of memory or more", Subject: "growth of naive's resident memory by 10,000 stalled requests", Unit: "MiB", Rule: judge.AtLeast(1024), Spread: 20,
			Cases: crowded(ledger.Case{Setup: Shape + ", over HTTP", Value: ledger.Of(stalledKey, stalledMemory)})},
	},
}

var claimOfNeighbours = ledger.Claim{ID: "H8", Title: "one naive service with 5,000 goroutines starves the others on its database, and a pool does not", Published: "a scenario: 5,000 goroutines; no figure",
	Note: "The database runs 100 look-ups at full speed; with more of them, all slow down. So a pool spares its neighbours as long as the bounds of all services together are within what the database bears: here 20 and 20 of 100.",
	Parts: []ledger.Part{
		{ID: "naive", Title: "beside a naive service the neighbour does less than half of what it does alone", Subject: "the neighbour's goodput beside naive, of what it does alone,", Unit: "%", Rule: judge.Below(50), Spread: 2,
			Cases: decided(ledger.One(Shape, ofAlone(keyOf(Neighbour, Naive))), ofReal(RealNeighbour, Unprotected, ofAlone))},
		{ID: "pool", Title: "beside a pool the neighbour does 90 % of what it does alone, or more", Subject: "the neighbour's goodput beside a pool, of what it does alone,", Unit: "%", Rule: judge.AtLeast(90), Spread: 2,
			Cases: decided(ledger.Only(shapeAndOurs(Neighbour, ofAlone)...), ofReal(RealNeighbour, Pooled, ofAlone))},
	},
}

var claimOfShutdown = ledger.Claim{ID: "H12", Title: "closing the queue, draining and then shutting down loses nothing", Published: "a rule, no figure",
	Note: "The published shutdown closes the queue and, at the same moment, tells the workers to stop. A worker that is done has two reasons to go on, an entry of the queue and the word to stop, and Go chooses one at random: it takes one more request on average. Nobody tells the callers of the rest, which wait as long as they may, and the shutdown reports success.",
	Parts: []ledger.Part{{Subject: "the count of accepted requests without an answer, of 120 at a shutdown,", Kind: judge.Never, Rule: judge.Exactly(0),
		Cases: ledger.Only(shapeAndOurs(Shutdown, func(k ledger.Key) ledger.Term { return ledger.Of(k, lostRequests) })...)}},
}

var claimOfLongLived = ledger.Claim{ID: "H14", Title: "a worker pool serves for long-lived connections, such as WebSockets, too", Published: "a recommendation, no figure",
	Note: "A connection keeps its worker for as long as it is open. With as many of them as workers nothing else is done, whatever the queue holds: that is what the recommendation leaves out.",
	Parts: []ledger.Part{{Subject: "the count of short requests answered within a second, of 10 beside a long-lived connection for each worker,", Kind: judge.Every, Rule: judge.AtLeast(shortRequests),
		Cases: ledger.Only(append(shapeAndOurs(LongLived, answeredShort), ledger.Case{Setup: Shape + ", naive", Value: answeredShort(keyOf(LongLived, Naive)), Beside: true})...)}},
}

func answeredShort(k ledger.Key) ledger.Term { return ledger.Of(k, shortAnswered) }
