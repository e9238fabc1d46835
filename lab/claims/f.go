package claims

import judge "github.com/spillway-go/spillway/lab/oldjudge"

const sourceF = "an article on goroutines for a composite user store"

const sourceFanout = "Spillway's own promise"

// F is fan-out over a database and a cache: a composite store asks both for
// users by e-mail and organisation and merges the lists without duplicates. The
// database's failure is fatal, the cache's is ignored. Sequential, or with the
// cache asked in a goroutine that is started before the database is.
//
// The published parallel version loses answers. The claims are judged for the same
// code with one correction: it waits before it reads.
var F = Family{
	ID:     "F",
	Title:  "Fan-out over a database and a cache",
	Source: sourceF,
	Claims: []Claim{
		F1, F2, F3, F4,
		FanoutMean, FanoutWorst, FanoutToParallel, FanoutToSequential,
		FanoutAllocs, FanoutBytes, FanoutGoroutines, FanoutNested,
		FanoutHedgedP99, FanoutHedgedLoad, FanoutHedgedOutage, FanoutHedgedOriginals,
	},
	Recommendations: []Recommendation{{
		For:     "calls that take less than a millisecond",
		Use:     "sequential, unless they are a meaningful share of the request",
		RestsOn: []string{"F2", "F4"},
		Source:  sourceF,
	}},
}

// The published claims.
var (
	// F1 takes pairs of times at 50 ms each: A sequential, B corrected.
	F1 = Claim{
		ID: "F1", Title: "with 50 ms for each store, parallel is twice as fast", Published: "101.69 vs 50.81 ms",
		HoldsIf:  "sequential/corrected is 1.9–2.1x",
		Question: judge.Question{Subject: "sequential/corrected at 50/50 ms", Unit: "x", Figure: judge.Ratio, Rule: judge.Between(1.9, 2.1)},
		Source:   sourceF,
		Note:     "As printed it is as fast and loses answers: its return expression is evaluated before the deferred wait.",
	}

	// F2 takes pairs of times in µs at 500 and 100 µs: A sequential, B corrected.
	F2 = Claim{
		ID: "F2", Title: "with 500 and 100 µs, parallel saves about 100 µs", Published: "608 vs 512 µs",
		HoldsIf:  "sequential − corrected is 80–120 µs",
		Question: judge.Question{Subject: "what the corrected code saves at 500/100 µs", Unit: "µs", Figure: judge.Difference, Rule: judge.Between(80, 120)},
		Source:   sourceF,
		Note:     "In an idle process on Linux a sleep of less than a millisecond takes about 1.08 ms, so this cannot be shown with time.Sleep: virtual time shows the law, computing the cost.",
	}

	// F3 takes pairs of allocations of a lookup: A corrected, B sequential.
	F3 = Claim{
		ID: "F3", Title: "parallel costs 4 more allocations and some 270 bytes", Published: "5 allocations, 1,537 bytes vs 9 allocations, 1,805 bytes",
		HoldsIf:  "corrected − sequential is 3–5 allocations",
		Question: judge.Question{Subject: "corrected − sequential, allocations of a lookup,", Figure: judge.Difference, Rule: judge.Between(3, 5)},
		Source:   sourceF,
	}

	// F4 takes each repeat's break-even: how many µs a branch must take for the
	// corrected code to be as fast as the sequential.
	F4 = Claim{
		ID: "F4", Title: "below a millisecond sequential is the right default", Published: "a rule, no figure",
		HoldsIf:  "break-even for each branch is at least 500 µs",
		Question: judge.Question{Subject: "break-even for each branch", Unit: "µs", Figure: judge.Mean, Rule: judge.AtLeast(500)},
		Source:   sourceF,
		Note:     "Two times that differ by less than 2 % are a tie, which is no gain. Where parallel wins at every duration that was tried, or at none, the shortest or the longest of these stands for the break-even, which then lies below or above it.",
	}
)

// fanoutRatio is a claim that a/b stays at or below a bound.
func fanoutRatio(id, title, subject, holdsIf string, bound float64) Claim {
	return Claim{
		ID: "F/fanout-" + id, Title: title, Published: ownGoal, HoldsIf: holdsIf,
		Question: judge.Question{Subject: subject, Unit: "x", Figure: judge.Ratio, Rule: judge.AtMost(bound)}, Source: sourceFanout,
	}
}

// fanoutPeak is a claim about a figure that no repeat may exceed.
func fanoutPeak(id, title, subject, holdsIf, unit string, bound float64) Claim {
	return Claim{
		ID: "F/fanout-" + id, Title: title, Published: ownGoal, HoldsIf: holdsIf,
		Question: judge.Question{Subject: subject, Unit: unit, Figure: judge.Peak, Rule: judge.AtMost(bound)}, Source: sourceFanout,
	}
}

const ownGoal = "a goal of this project, no published figure"

// What this project promises of its fan-out.
var (
	// FanoutMean takes for each repeat the geometric mean over the cells of a
	// grid: A our time, B that of the better of sequential and the best parallel.
	FanoutMean = fanoutRatio("1-mean", "without a number it takes at most 1.05 of the better of sequential and the best parallel",
		"our time/the better's, over all cells,", "time/the better's is at most 1.05", 1.05)
	// FanoutWorst takes such pairs of the cell that is worst for us.
	FanoutWorst = fanoutRatio("1-worst", "and at most 1.10 in the worst cell",
		"our time/the better's in the worst cell", "time/the better's is at most 1.10", 1.10)

	FanoutToParallel = fanoutPeak("1-to-parallel", "when work becomes slow it is parallel within 64 calls",
		"calls until it was parallel", "calls are at most 64", "", 64)
	FanoutToSequential = fanoutPeak("1-to-sequential", "when work becomes quick it is sequential within 64 calls",
		"calls until it was sequential", "calls are at most 64", "", 64)

	// FanoutAllocs takes each repeat's allocations of a lookup beyond those of the
	// sequential one.
	FanoutAllocs = fanoutPeak("2-allocs", "up to 8 branches it allocates no more often than sequential code",
		"allocations beyond the sequential lookup's", "there is none in any repeat", "", 0)
	// FanoutBytes takes pairs of bytes: A ours, B sequential.
	FanoutBytes = fanoutRatio("2-bytes", "nor more", "our bytes/the sequential lookup's", "bytes/sequential's are at most 1.01", 1.01)

	FanoutGoroutines = fanoutPeak("2-goroutines", "nested 16 × 16 × 16 it needs at most 64 goroutines",
		"goroutines beside the caller's", "there are at most 64", "", 64)
	// FanoutNested takes pairs of times: A ours, B a WaitGroup at every level.
	FanoutNested = fanoutRatio("2-nested", "and at most twice the time of unbounded goroutines",
		"our time/that of unbounded goroutines", "time/unbounded is at most 2", 2)

	// FanoutHedgedP99 takes pairs of p99: A not hedged, B hedged.
	FanoutHedgedP99 = Claim{
		ID: "F/fanout-4-p99", Title: "where one attempt in a hundred straggles, hedging cuts p99 to an eighth", Published: ownGoal,
		HoldsIf:  "p99 not hedged/hedged is at least 8",
		Question: judge.Question{Subject: "p99 not hedged/hedged", Unit: "x", Figure: judge.Ratio, Rule: judge.AtLeast(8)}, Source: sourceFanout,
	}
	FanoutHedgedLoad = fanoutPeak("4-load", "at no more than 2 % of extra load",
		"second attempts of the first", "second attempts are at most 2 %", "%", 2)
	FanoutHedgedOutage = fanoutPeak("4-outage", "and 5 % in an outage",
		"second attempts of the first in an outage", "second attempts are at most 5 %", "%", 5)
	FanoutHedgedOriginals = fanoutPeak("4-originals", "no first attempt is cancelled unless the second has won",
		"first attempts that were cancelled before the second had won", "there is none in any repeat", "", 0)
)
