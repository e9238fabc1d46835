package claims

import (
	"fmt"

	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

const sourceH = "Stella-Achar-Oiro, github.com/Stella-Achar-Oiro/healthcare-api-benchmark and its article"

// H is the patient API under three concurrency patterns. Published loads are
// closed loops of 1,000 requests by 100 clients (low), 10,000 by 1,000 (high)
// and 50,000 by 500 (sustained) over a store that answers in 50 to 100 ms and
// fails 5 % of the time; "the pool" has 20 workers and a queue of 100.
//
// In the published sense, throughput counts every answer, refusals and errors
// too. Goodput counts successes only.
var H = Family{
	ID:     "H",
	Title:  "A patient API under three concurrency patterns",
	Source: sourceH,
	Claims: []Claim{
		H1,
		H2Refused, H2Goodput, H2Law,
		H3Refused, H3Throughput, H3Goodput,
		H4Published, H4Warm,
		H9Uncleared, H9Cleared,
		H10P99, H10GC,
		H11Stack, H11Connections,
	},
	Recommendations: []Recommendation{
		{
			For:     "patient-facing services and real-time monitoring",
			Use:     "optimized: a worker pool with pooled response objects",
			RestsOn: []string{"H9/cleared", "H10"},
			Source:  sourceH,
		},
		{
			For:     "internal tools",
			Use:     "workerpool",
			RestsOn: []string{"H8", "H11/connections"},
			Source:  sourceH,
		},
		{
			For:     "batch jobs",
			Use:     "workerpool with a larger queue",
			RestsOn: []string{"H2/refused", "H5"},
			Source:  sourceH,
		},
		{
			For:     "prototypes, scripts and tools with known bounds, and nothing else",
			Use:     "naive: a goroutine per request",
			RestsOn: []string{"H1", "H6", "H7", "H8"},
			Source:  sourceH,
		},
	},
}

// H1 takes pairs of throughput at low load: A naive, B the pool.
var H1 = Claim{
	ID:        "H1",
	Title:     "at low load naive beats the small pool 4–5x in throughput",
	Published: "1,115 vs 260 (optimized: 261) req/s; mean 75.9 vs 364.9 ms; p99 100 vs 424 ms; errors 5.8 vs 5.3 %",
	HoldsIf:   "naive/pool throughput is 4–5x",
	Question: judge.Question{
		Subject: "naive/pool throughput at low load", Unit: "x",
		Figure: judge.Ratio, Rule: judge.Between(4, 5),
	},
	Source: sourceH,
	Note:   "100 clients share 20 workers, so the ratio is 100/20 less the tail of each run: it follows from the sizes, not from the cost of goroutines.",
}

const publishedHigh = "11,104 / 2,124 / 2,248 req/s for naive / workerpool / optimized; mean 75.5 / 148.5 / 145.0 ms; errors 5.2 / 88.3 / 88.8 %, refusals included"

// H2Refused takes the pool's refused share of all requests at high load, in
// per cent.
var H2Refused = Claim{
	ID:        "H2/refused",
	Title:     "at high load the pool refuses 88 %",
	Published: publishedHigh,
	HoldsIf:   "85–92 % of the requests are refused",
	Question: judge.Question{
		Subject: "the pool's share of refused requests at high load", Unit: "%",
		Figure: judge.Mean, Rule: judge.Between(85, 92),
	},
	Source: sourceH,
	Note:   "The share is fixed by the set-up: of 1,000 clients, 120 fit into workers and queue, and the other 880 burn their ten requests on refusals.",
}

// H2Goodput takes the pool's successes per second at high load.
var H2Goodput = Claim{
	ID:        "H2/goodput",
	Title:     "at high load the pool answers 2,124 req/s",
	Published: publishedHigh,
	HoldsIf:   "the pool's goodput is within 10 % of 2,124 req/s",
	Question: judge.Question{
		Subject: "the pool's goodput at high load", Unit: "req/s",
		Figure: judge.Mean, Rule: judge.Within(0.10, 2124),
	},
	Source: sourceH,
	Note:   "The published figure counts refusals as answers. 20 workers over a store of 75 ms with 5 % errors can succeed 253 times a second, whatever the load.",
}

// H2Law takes pairs at high load: A the pool's goodput, B what Little's law
// allows, workers × (1 − error rate) ÷ mean store latency. It is our check of
// the explanation, not a claim of the source.
var H2Law = Claim{
	ID:        "H2/law",
	Title:     "the pool's goodput is workers × (1 − error rate) ÷ store latency",
	Published: "not claimed; it explains why H2/goodput comes out as it does",
	HoldsIf:   "measured goodput is within 10 % of the law",
	Question: judge.Question{
		Subject: "the pool's goodput at high load over what Little's law gives", Unit: "x",
		Figure: judge.Ratio, Rule: judge.Within(0.10, 1),
	},
	Source: "Little's law, our own check",
}

const publishedSustained = "6,179 / 1,593 / 1,547 req/s for naive / workerpool / optimized; mean 75.8 / 164.5 / 167.1 ms; errors 4.9 / 84.5 / 84.0 %, refusals included"

// H3Refused takes the pool's refused share under sustained load, in per cent.
var H3Refused = Claim{
	ID:        "H3/refused",
	Title:     "under sustained load the pool still refuses most",
	Published: publishedSustained,
	HoldsIf:   "80–90 % of the requests are refused",
	Question: judge.Question{
		Subject: "the pool's share of refused requests under sustained load", Unit: "%",
		Figure: judge.Mean, Rule: judge.Between(80, 90),
	},
	Source: sourceH,
}

// H3Throughput takes pairs of throughput under sustained load, refusals
// counted: A naive, B the pool.
var H3Throughput = Claim{
	ID:        "H3/throughput",
	Title:     "under sustained load naive answers about four times as much as the pool",
	Published: publishedSustained,
	HoldsIf:   "naive/pool throughput, refusals counted as the source does, is 3–5x",
	Question: judge.Question{
		Subject: "naive/pool throughput under sustained load, refusals counted,", Unit: "x",
		Figure: judge.Ratio, Rule: judge.Between(3, 5),
	},
	Source: sourceH,
}

// H3Goodput takes the pool's successes per second under sustained load.
var H3Goodput = Claim{
	ID:        "H3/goodput",
	Title:     "under sustained load the pool answers 1,593 req/s",
	Published: publishedSustained,
	HoldsIf:   "the pool's goodput is within 10 % of 1,593 req/s",
	Question: judge.Question{
		Subject: "the pool's goodput under sustained load", Unit: "req/s",
		Figure: judge.Mean, Rule: judge.Within(0.10, 1593),
	},
	Source: sourceH,
	Note:   "As in H2/goodput, the published figure counts refusals as answers.",
}

// H4Published takes the true reuse rate of the response pool in the published
// set-up, in per cent: Gets answered by an object that was put back.
var H4Published = Claim{
	ID:        "H4/published",
	Title:     "pooled response objects are reused 51 % of the time",
	Published: "51 %",
	HoldsIf:   "true reuse in the published set-up is 45–57 %",
	Question: judge.Question{
		Subject: "true reuse of response objects in the published set-up", Unit: "%",
		Figure: judge.Mean, Rule: judge.Between(45, 57),
	},
	Source: sourceH,
	Note:   "The published counter takes every Get for a hit and only the 5 % error path puts an object back, so it shows 1/1.95 = 51 % at a true reuse of about 5 %.",
}

// H4Warm takes the true reuse rate of a correct pool after its warm-up, in per
// cent.
var H4Warm = Claim{
	ID:        "H4/warm",
	Title:     "a warm pool reuses 80–90 %",
	Published: "80–90 %",
	HoldsIf:   "true reuse after warm-up is 80–90 %",
	Question: judge.Question{
		Subject: "true reuse of response objects in a warm pool", Unit: "%",
		Figure: judge.Mean, Rule: judge.Between(80, 90),
	},
	Source: sourceH,
	Note:   "A rate above 90 % fails the rule too: the pool is then better than claimed.",
}

// H9Uncleared takes each repeat's count of responses that carried another
// patient's data while objects were reused without clearing.
var H9Uncleared = Claim{
	ID:        "H9/uncleared",
	Title:     "reuse without clearing shows one patient's data to another",
	Published: "a rule, no figure",
	HoldsIf:   "uncleared reuse shows foreign data at least once",
	Question: judge.Question{
		Subject: "the count of responses with another patient's data, when reused uncleared,", Figure: judge.Peak, Rule: judge.Above(0),
	},
	Source: sourceH,
}

// H9Cleared takes each repeat's count of such responses with objects that are
// cleared and returned only when no reader is left.
var H9Cleared = Claim{
	ID:        "H9/cleared",
	Title:     "reuse with clearing and a clear owner shows none",
	Published: "a rule, no figure",
	HoldsIf:   "cleared and correctly owned reuse never shows foreign data",
	Question: judge.Question{
		Subject: "the count of responses with another patient's data, when cleared and correctly owned,", Figure: judge.Peak, Rule: judge.AtMost(0),
	},
	Source: sourceH,
	Note:   "Clearing alone does not suffice: the published code gives the object back before the receiver has encoded it.",
}

const (
	publishedH10 = "no figure of GC; p99 418 vs 424 ms at low load and 566 vs 569 ms at high load"
	noteH10      = "To be measured at loads where both patterns answer more than 1,000 requests a second."
)

// H10P99 takes pairs of p99 latency of successes above 1,000 req/s: A
// optimized, B workerpool; the A/A pairs are twins of either.
var H10P99 = Claim{
	ID:        "H10/p99",
	Title:     "pooled responses cut p99 above 1,000 req/s",
	Published: publishedH10,
	HoldsIf:   "optimized/workerpool p99 is lower by more than the noise floor",
	Question: judge.Question{
		Subject: "optimized/workerpool p99", Unit: "x",
		Figure: judge.Ratio, Rule: judge.LowerThanNoise(),
	},
	Source: sourceH,
	Note:   noteH10,
}

// H10GC takes pairs of the garbage collector's share of CPU above 1,000 req/s,
// in per cent: A optimized, B workerpool. It is a difference in percentage
// points, because a short run may see no collection at all.
var H10GC = Claim{
	ID:        "H10/gc",
	Title:     "pooled responses cut the collector's share of CPU above 1,000 req/s",
	Published: publishedH10,
	HoldsIf:   "optimized − workerpool GC share is lower by more than the noise floor",
	Question: judge.Question{
		Subject: "optimized − workerpool share of CPU in garbage collection", Unit: "points",
		Figure: judge.Difference, Rule: judge.LowerThanNoise(),
	},
	Source: sourceH,
	Note:   noteH10,
}

// H10 is the claim as a whole, which one of its halves satisfies. It carries
// the figures of the half that decided it, or of p99.
func H10(p99, gc results.OldClaim) results.OldClaim {
	whole := p99
	whole.Verdict = judge.Any(p99.Verdict, gc.Verdict)
	if gc.Verdict == whole.Verdict && p99.Verdict != whole.Verdict {
		whole = gc
	}
	whole.ID = "H10"
	whole.Title = "pooled responses cut GC or p99 above 1,000 req/s"
	whole.Rule = "p99 or GC share is lower by more than the noise floor"
	whole.Why = fmt.Sprintf("p99 %s and GC share %s: %s", p99.Verdict, gc.Verdict, whole.Why)
	return whole
}

// H11Stack takes the measured stack per goroutine of naive, in KB of 1,024
// bytes.
var H11Stack = Claim{
	ID:        "H11/stack",
	Title:     "a goroutine costs 2–4 KB",
	Published: "2 KB a goroutine; 1,000 are 2–4 MB",
	HoldsIf:   "measured stack per goroutine is 2–4 KB",
	Question: judge.Question{
		Subject: "stack per goroutine", Unit: "KB",
		Figure: judge.Mean, Rule: judge.Between(2, 4),
	},
	Source: sourceH,
	Note:   "2 KB is where a stack starts; a handler that goes through HTTP and a database driver grows it.",
}

// H11Connections takes each repeat's peak of store connections in use by the
// pool of 20 workers; see [H11ConnectionsOf] for another size.
var H11Connections = H11ConnectionsOf(20)

// H11ConnectionsOf is H11Connections for a pool of that many workers.
func H11ConnectionsOf(workers int) Claim {
	return Claim{
		ID:        "H11/connections",
		Title:     fmt.Sprintf("%d workers never hold more than %d connections", workers, workers),
		Published: "20 workers, at most 20 connections",
		HoldsIf:   fmt.Sprintf("connections in use never exceed the %d workers", workers),
		Question: judge.Question{
			Subject: "the pool's peak of store connections in use", Figure: judge.Peak, Rule: judge.AtMost(float64(workers)),
		},
		Source: sourceH,
	}
}
