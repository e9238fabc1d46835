package patterns

import (
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/load/judge"
)

// ofReal is a case on the real database.
func ofReal(setup, contestant string, value func(ledger.Key) ledger.Term) ledger.Case {
	return ledger.Case{Setup: setup + ", " + contestant, Value: value(keyOf(setup, contestant))}
}

// goals are the cases of one of our own figures on the real database: that of the adaptive
// service decides, the others stand beside.
func goals(setup string, value func(ledger.Key) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for _, contestant := range find(setup).contestants {
			if contestant == Nobody {
				continue
			}
			c := ofReal(setup, contestant, value)
			c.Beside = contestant != Adaptive
			if k := keyOf(setup, contestant); !e.Has(k) {
				c.Open = "It needs a real database: run it with --postgres URL, and without --contestant."
			} else if setup == RealCrowd {
				c.Open = otherCrowd(e.ParamOf(k, "users"))
			}
			out = append(out, c)
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

// ofFair is the goodput in per cent of that which a contestant had when all was well.
func ofFair(k, fair ledger.Key) ledger.Term {
	return ledger.Of(k, ownGood).Over(ledger.Of(fair, fairGood)).Times(100)
}

// spared is that no connection is refused.
func spared(setup string) ledger.Part {
	refused := func(k ledger.Key) ledger.Term { return ledger.Of(k, refusedConnections) }
	return ledger.Part{ID: "refused", Title: "PostgreSQL refuses no connection", Subject: "the count of connections that PostgreSQL refused", Kind: judge.Never,
		Rule: judge.Exactly(0), Cases: goals(setup, refused)}
}

var goalOfCrowd = ledger.Claim{ID: "H6-adaptive", Goal: true, Title: "10,000 users at once cost an adaptive service on 100 connections less than a tenth of its goodput, and no critical look-up",
	Note:  "The goodput without them is what as many clients as there are connections get from a pool that was told their number. A user who is refused asks again after one to one and a half seconds, and then after two to three, or when Retry-After says so if that is later. Fifty look-ups a second are critical.",
	Parts: kept(RealCrowd, "of all connections without the crowd", func(k ledger.Key) ledger.Term { return ofFair(k, k.By(Told)) })}

var goalOfStall = ledger.Claim{ID: "H7-adaptive", Goal: true, Title: "a query that hangs for 30 s costs an adaptive service less than a tenth of its other goodput, and no critical look-up",
	Note:  "One request of 33 asks for a table that somebody else has locked. The service ends such a query at its deadline of 5 s, so that fifty of them hang at a time, with half of the connections. The goodput is of all other requests, and is compared with that of the unprotected service before; a fifth of all are critical.",
	Parts: kept(RealStall, "that there is without the lock", func(k ledger.Key) ledger.Term { return ofFair(k, k.By(Unqueued)) })}

var goalOfNeighbours = ledger.Claim{ID: "H8-adaptive", Goal: true, Title: "beside an adaptive service with 5,000 clients its neighbour does at least 95 % of what it does alone",
	Note: "The neighbour has a pool of 20 connections, the adaptive service may open 75: 100 belong to the role of both.",
	Parts: []ledger.Part{
		{ID: "neighbour", Title: "the neighbour does at least 95 % of what it does alone", Subject: "the neighbour's goodput of what it does alone", Unit: "%",
			Rule: judge.AtLeast(95), Spread: 1, Cases: goals(RealNeighbour, ofAlone)},
		spared(RealNeighbour),
	}}
