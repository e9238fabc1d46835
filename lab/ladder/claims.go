package ladder

import (
	"math"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

// kept is a figure that is made of several servers' times.
func kept(key, name string) ledger.Term { return ledger.Of(named(NetHTTP), ledger.Extra(key, name)) }

// ofLead is a time in per cent of what fasthttp needs less than net/http, within each round.
func ofLead(t ledger.Term) ledger.Term { return t.Over(kept("lead_us", "lead")).Times(100) }

func share(r Rungs) ledger.Term { return ofLead(kept(r.key(), "share of "+r.String())) }

// less is what one server needs less than another.
func less(from, to ledger.Key) ledger.Term {
	cpu := ledger.Extra("cpu_us", "processor time for a request")
	return ofLead(ledger.Of(from, cpu).Minus(ledger.Of(to, cpu)))
}

// The parts of the lead that no saving accounts for. Below 0, the small server costs more
// than net/http, or less than fasthttp.
const (
	restHigh = NetHTTP + " − " + slow
	restLow  = fast + " − " + FastHTTP
)

var high, low = ofLead(kept("rest_high_us", restHigh)), ofLead(kept("rest_low_us", restLow))

var bytes = ledger.Extra("bytes", "bytes of a request")

// objects is an exact count. What connections and collections add is a fraction of an object.
var objects = ledger.Figure{Name: "allocations of a request", Value: func(r *results.Run) float64 {
	if n, ok := r.Extra["allocs"]; ok {
		return math.Round(n)
	}
	return math.NaN()
}}

// makes is a part about the objects that a server makes for each of these requests.
func makes(id, title, server string, rule judge.Rule, published float64, requests ...string) ledger.Part {
	var cases []ledger.Case
	for _, request := range requests {
		k := asked(server, request)
		if request == usual {
			k = named(server)
		}
		cases = append(cases, ledger.Case{Setup: request, Value: ledger.Of(k, objects)})
	}
	return ledger.Part{ID: id, Title: title, Subject: "allocations of a request in the server's process", Kind: judge.Every, Exact: true, Rule: rule, Published: []float64{published}, Cases: ledger.Only(cases...)}
}

// size is a term without its sign, which is that of its median over the repeats: by the
// sign of each repeat, noise alone would count.
func size(t ledger.Term) ledger.Term { return ledger.Best(t, t.Times(-1)) }

var family = ledger.Family{
	ID: "G7", Title: "fasthttp's lead over net/http is taken apart, saving by saving",
	Source: "gsarmaonline, github.com/gsarmaonline/golang-measurements and its article (2026 update)",
	Claims: []ledger.Claim{
		{ID: "G7", Title: "request state, a byte API and a header parser make fasthttp's lead over net/http, in this order, and the worker pool only 10–15 % of it",
			Published: "10–15 % (≈150 ns and 2 KB a request); order: RequestCtx > []byte > header parser > worker pool; most is pooled request state (net/http makes 20+ objects a request) and a byte API",
			Note:      "With keep-alive, net/http starts a goroutine for a connection, not for a request, so that a pool of connection workers has next to nothing to save. What net/http does beside the handler (a read ahead that notices when the client leaves, a context to cancel, deadlines) is not in the published order.",
			Parts: []ledger.Part{
				{ID: "workers", Title: "the pool of connection workers explains only 10–15 % of the lead", Subject: "the share of connection workers", Unit: "%",
					Rule: judge.Between(5, 20), Published: []float64{10, 15}, Spread: 1,
					Cases: ledger.Only(
						ledger.Case{Setup: "all orders", Value: share(Workers)},
						ledger.Case{Setup: "added to none", Value: less(named(slow), small(Workers)), Beside: true},
						ledger.Case{Setup: "taken from all", Value: less(small(AllRungs&^Workers), named(fast)), Beside: true},
					)},
				{ID: "order", Title: "pooled request state saves most, then a byte API, then the header parser, then the worker pool", Subject: "the first share − the second", Unit: "%",
					Rule: judge.Above(0), Spread: 1, Min: -1000, Max: 1000, Cases: ledger.Only(order()...)},
			}},
		{ID: "G10", Title: "net/http makes 20 and more objects a request, fasthttp none", Published: "20+ and none",
			Note: "The whole process of the server counts, on connections that are kept alive. How many objects there are depends on the request: fields, a query and a body make some each.",
			Parts: []ledger.Part{
				makes("usual", "net/http makes 20 and more objects for a usual request", NetHTTP, judge.AtLeast(20), 20, usual, Posted),
				makes("every", "net/http makes 20 and more objects for every request", NetHTTP, judge.AtLeast(20), 20, HostAlone),
				makes("fasthttp", "fasthttp makes no object a request", FastHTTP, judge.AtMost(1), 0, usual, HostAlone, Posted),
			}},
		{ID: "G11", Title: "an API of strings copies on every access", Published: "a rule, no figure",
			Note: "net/http's handlers read strings. If each reading copied, a hundred more of one header would allocate a hundred times the header.",
			Parts: []ledger.Part{{Subject: "bytes allocated for each reading of a header", Unit: "B", Rule: judge.AtLeast(1), Spread: .1,
				Cases: ledger.One(NetHTTP, ledger.Of(readAgain, bytes).Minus(ledger.Of(named(NetHTTP), bytes)).Times(1./MoreReads))}}},
		{ID: "ladder-1", Goal: true, Title: "the savings' shares explain at least 90 % of the lead, and either end of the ladder leaves at most 5 % of it", Parts: []ledger.Part{
			{ID: "explained", Title: "the lead is the savings' shares", Subject: "the lead without what is no saving's share", Unit: "%", Rule: judge.AtLeast(90), Spread: 1, Min: -1000, Max: 1000,
				Cases: ledger.Only(ledger.Case{Setup: "all orders", Value: ledger.Const(100).Minus(size(high)).Minus(size(low)),
					Remark: "What is left at one end of the ladder does not make up for what is left at the other."})},
			{ID: "rest", Title: "what is no saving's share is small", Subject: "the share of the lead", Unit: "%", Rule: judge.Between(-5, 5), Spread: 1,
				Cases: ledger.Only(ledger.Case{Setup: restHigh, Value: high}, ledger.Case{Setup: restLow, Value: low})},
		}},
		{ID: "ladder-2", Goal: true, Title: "each share is known to 5 % of the lead", Parts: []ledger.Part{
			{ID: "precise", Title: "the rounds of one repeat tell each share to 5 % of the lead", Subject: "half of the interval of the share that is known least", Unit: "%", Rule: judge.AtMost(5),
				Cases: ledger.One("all orders", kept("widest", "widest interval"))},
			{ID: "placebo", Title: "a rung that changes nothing is worth nothing", Subject: "the share of no change", Unit: "%", Rule: judge.Between(-5, 5), Spread: 1,
				Cases: ledger.One("both ends, twice", ofLead(kept("nothing_us", "share of no change")))},
		}},
	},
	Sources: []ledger.Source{{Name: "gsarmaonline/golang-measurements", URL: "https://github.com/gsarmaonline/golang-measurements", What: "and the article that goes with it"}},
	Columns: []ledger.Column{
		{Key: "cpu_us", Name: "processor time for a request", Format: "micros"}, {Key: "share", Name: "share of the lead, %", Format: "decimals"}, {Key: "allocs", Name: "allocations", Format: "decimals"}, {Key: "bytes", Name: "allocated", Format: "size"},
	},
	Grid: "every other set",
	Steps: ledger.Steps{Of: "µs of processor time for a request", By: NetHTTP, Parts: []ledger.Column{
		{Key: "rest_high_us", Name: restHigh}, saved(State), saved(Bytes), saved(Parser), saved(Workers), saved(Unwatched), saved(OneBuffer), {Key: "rest_low_us", Name: restLow},
	}},
	Method: []ledger.Note{
		{Title: "What is measured", Text: "Processor time of the servers' process, user and system, as the system reports it, over the requests answered. Time on the clock would measure the client and the network too. The client is a process of its own, which writes fixed bytes, parses the first answer of a connection and compares the others. The servers take short turns in random order, one at a time, each started for its turn and warmed; the garbage of a turn is charged at the price that a collection has in the same process. Ratios are taken within a round, of which the median counts; the first round is a warm-up."},
		{Title: "The same request", Text: "A GET with seven fields; every handler cuts the id out of the path, echoes one field and writes a body of some 80 bytes with its type. For G10 net/http and fasthttp also answer a GET with Host alone and a POST with a body of 67 bytes."},
		{Title: "All orders", Text: "What a saving is worth depends on the others: a reused request saves less where strings are allocated anyway. So the small server runs with every set of savings, and a saving's share is what it takes off in the mean of all orders in which they can be added, in per cent of what fasthttp needs less than net/http in the same round. Added to none and taken from all are the ends of that, shown apart."},
		{Title: "What stands in its place", Text: "Without a saving the small server does what net/http does, with the same library where it is public: http.ReadRequest, url, http.Header, a context, a goroutine that reads ahead, seven deadlines, two buffers. It is no product: it answers GET without a body, and has no limits on time."},
		{Title: "What cannot be switched", Text: "fasthttp and net/http are measured as they are: none of their savings is taken out or added."},
		{Title: "What is explained", Text: "The lead is, in every round: what net/http needs beyond the small server without savings, the share of each saving, and what the small server with every saving needs beyond fasthttp. Explained is the lead without the sizes of the two parts that are no saving's share. They may be below 0, and are taken off all the same: a small server that is too cheap at both ends has the right difference and the wrong reasons."},
	},
}

// saved is what a saving takes off.
func saved(r Rungs) ledger.Column {
	return ledger.Column{Key: r.key(), Name: r.String(), Format: "decimals"}
}

// order compares each share with the next one of the published order, and beside that the
// first two with all else, and each with nothing.
func order() []ledger.Case {
	var out []ledger.Case
	for i := range 3 {
		more, next := Ordered[i], Ordered[i+1]
		out = append(out, ledger.Case{Setup: more.String() + " > " + next.String(), Value: share(more).Minus(share(next))})
	}
	both := share(State).Plus(share(Bytes))
	out = append(out, ledger.Case{Setup: "pooled state and byte API > all else", Beside: true, Value: both.Minus(ledger.Const(100).Minus(both)),
		Remark: "Above 0 they are most of the lead."})
	for _, r := range Ordered {
		out = append(out, ledger.Case{Setup: r.String() + " > nothing", Value: share(r), Beside: true})
	}
	return out
}
