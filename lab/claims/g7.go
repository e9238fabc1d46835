package claims

import (
	"strings"

	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

// Ladder is what fasthttp's lead over net/http is made of. Shares are in per
// cent of the difference in the server's processor time for a request; a
// saving's share is what it takes off in the mean of all orders in which savings
// can be added.
const sourceG = "gsarmaonline, github.com/gsarmaonline/golang-measurements and its article (2026 update)"

var Ladder = Family{
	ID:     "G7",
	Title:  "What fasthttp's lead over net/http is made of",
	Source: sourceG,
	Claims: []Claim{
		LadderWorkers, LadderOrder, LadderMost, LadderCounts, LadderRest, LadderExplained, LadderPrecise, LadderPlacebo,
	},
}

const publishedG7 = "10–15 % (≈150 ns and 2 KB a request); order: RequestCtx > []byte > header parser > worker pool"

const noteG7 = "With keep-alive, net/http starts a goroutine for a connection, not for a request, so that a pool of connection workers has next to nothing to save. What net/http does beside the handler (a read ahead that notices when the client leaves, a context to cancel, deadlines) is not in the published order."

func share(subject string, rule judge.Rule) judge.Question {
	return judge.Question{Subject: subject, Unit: "%", Figure: judge.Mean, Rule: rule}
}

// LadderWorkers takes the share of connection workers.
var LadderWorkers = Claim{
	ID:        "G7/workers",
	Title:     "the pool of connection workers explains only 10–15 % of fasthttp's lead over net/http",
	Published: publishedG7,
	HoldsIf:   "its share is 5–20 %",
	Question:  share("the share of connection workers", judge.Between(5, 20)),
	Source:    sourceG,
	Note:      noteG7,
}

// LadderOrder takes pairs of shares of two savings that follow each other in the
// published order.
var LadderOrder = Claim{
	ID:        "G7/order",
	Title:     "pooled request state saves most, then a byte API, then the header parser, then the worker pool",
	Published: publishedG7,
	HoldsIf:   "each share is larger than the next one",
	Question: judge.Question{
		Subject: "the first share − the second", Unit: "%",
		Figure: judge.Difference, Rule: judge.Above(0),
	},
	Source: sourceG,
}

// LadderMost takes the sum of the shares of pooled state and byte API.
var LadderMost = Claim{
	ID:        "G7/most",
	Title:     "most of the lead is pooled request state and a byte API",
	Published: "most is pooled request state (net/http makes 20+ objects a request) and a byte API",
	HoldsIf:   "together they are more than half of it",
	Question:  share("the share of pooled state and byte API", judge.Above(50)),
	Source:    sourceG,
}

// LadderCounts takes the share of one saving.
var LadderCounts = Claim{
	ID:        "G7/counts",
	Title:     "the saving is part of the lead",
	Published: "the four of the published order; it does not name the last two",
	HoldsIf:   "its share is above 0",
	Question:  share("the share of the lead", judge.Above(0)),
	Source:    sourceG,
}

// LadderRest takes a share that belongs to no saving: what net/http costs beyond the
// small server without savings, or what the small server with every saving costs
// beyond fasthttp. Below 0, the small server costs more than net/http, or less than
// fasthttp.
var LadderRest = promise("G7/rest", "what is no saving's share is small", "within 5 % of the lead",
	share("the share of the lead", judge.Between(-5, 5)), "With the savings' own shares these are the whole lead, in every repeat.")

// LadderExplained takes 100 % without the sizes of both rests.
var LadderExplained = promise("G7/explained", "the savings' shares explain the lead", "at least 90 %",
	share("the lead without what is no saving's share", judge.AtLeast(90)),
	"Rests are taken off whether they are above 0 or below; they do not make up for each other.")

// LadderPrecise takes, for each saving, half of its share's interval.
var LadderPrecise = promise("G7/precise", "each share is known to 5 % of the lead", "at most 5 %",
	judge.Question{Subject: "the widest half of an interval", Unit: "%", Figure: judge.Peak, Rule: judge.AtMost(5)}, "")

// LadderPlacebo takes the share of a rung that changes nothing.
var LadderPlacebo = promise("G7/placebo", "a rung that changes nothing is worth nothing", "within 5 % of the lead",
	share("the share of no change", judge.Between(-5, 5)),
	"Both ends of the small server run twice.")

// G7 is the claim as a whole: the share of the workers and the order.
func G7(workers results.OldClaim, order ...results.OldClaim) results.OldClaim {
	whole := workers
	parts := []results.Verdict{workers.Verdict}
	for _, c := range order {
		parts = append(parts, c.Verdict)
	}
	whole.Verdict = judge.All(parts...)
	whole.Title = "request state, a byte API and a header parser make fasthttp's lead, in this order, and the worker pool only 10–15 % of it"
	whole.ID, whole.Setup = "G7", "share and order"
	whole.Rule = "the share of connection workers is 5–20 % and the order is the published one"
	var told []string
	for _, c := range order {
		told = append(told, c.Setup+": "+string(c.Verdict))
	}
	whole.Why += " The published order, pair by pair: " + strings.Join(told, "; ") + "."
	if whole.Verdict != results.Inconclusive {
		whole.MoreRuns = 0
	}
	return whole
}
func promise(id, title, published string, q judge.Question, note string) Claim {
	return Claim{
		ID: id, Title: title, Published: published, HoldsIf: q.Subject + ": " + published,
		Question: q, Source: "Spillway's own promise", Note: note,
	}
}
