package claims

import judge "github.com/spillway-go/spillway/lab/oldjudge"

const sourcePools = "Spillway's own promise"

// Pools is what this project promises for its worker pool, compared with the
// alternatives. A ratio of times is ours/theirs, taken in one process in turns. The
// best alternative is the one with the shortest mean time in that table.
var Pools = Family{
	ID:     "pools",
	Title:  "Worker pools side by side",
	Source: sourcePools,
	Claims: []Claim{
		PoolsMany, PoolsManyLibrary, PoolsManyAllocs,
		PoolsOne, PoolsOneWide, PoolsFlat,
		PoolsRefusal, PoolsRefusalAnts, PoolsRefusalTime, PoolsRefusalAllocs,
		PoolsCall, PoolsCallTunny, PoolsCallPond, PoolsCallAllocs,
		PoolsShort, PoolsLong,
		PoolsBurstFinish, PoolsBurstCPU, PoolsBurstMemory, PoolsBurstLeft,
		PoolsSizing,
	},
}

// poolsRatio is a claim that ours/theirs stays at or below a bound. It takes
// pairs of times: A ours, B theirs.
func poolsRatio(id, title, subject, holdsIf string, bound float64) Claim {
	return Claim{
		ID: "pools/" + id, Title: title, Published: "a goal of this project, no published figure", HoldsIf: holdsIf,
		Question: judge.Question{Subject: subject, Unit: "x", Figure: judge.Ratio, Rule: judge.AtMost(bound)},
		Source:   sourcePools,
	}
}

// poolsPeak is a claim about a count that no repeat may exceed.
func poolsPeak(id, title, subject string) Claim {
	return Claim{
		ID: "pools/" + id, Title: title, Published: "a goal of this project, no published figure", HoldsIf: "there is none in any repeat",
		Question: judge.Question{Subject: subject, Figure: judge.Peak, Rule: judge.AtMost(0)},
		Source:   sourcePools,
	}
}

// The claims. Those about allocations take each repeat's count per job, to two
// decimals: start-up costs divided by thousands of jobs round to none.
var (
	PoolsMany = poolsRatio("1-peer", "no-op jobs of 1,000 producers take at most half the time of the best peer, bare channel included",
		"our time/the best peer's", "time/best peer's is at most 0.5", .5)
	PoolsManyLibrary = poolsRatio("1-library", "and at most 0.15 of the best library's",
		"our time/the best library's", "time/best library's is at most 0.15", .15)
	PoolsManyAllocs = poolsPeak("1-allocs", "and no allocation", "allocations of a submission")

	PoolsOne = poolsRatio("2-peer", "no-op jobs of one producer take at most 0.8 of the best peer's time",
		"our time/the best peer's", "time/best peer's is at most 0.8", .8)
	PoolsOneWide = poolsRatio("2-wide", "with 1,000 workers at most 0.4",
		"our time/the best peer's", "time/best peer's is at most 0.4", .4)
	PoolsFlat = poolsRatio("2-flat", "1,000 workers cost one producer at most 15 % more than 2",
		"our time with most workers/with fewest", "time with 1,000 workers/with 2 is at most 1.15", 1.15)

	PoolsRefusal = poolsRatio("3-channel", "a counted refusal takes at most 1.25 of a bare try-send that counts nothing",
		"our refusal/a try-send", "time/try-send's is at most 1.25", 1.25)
	PoolsRefusalAnts = poolsRatio("3-ants", "and at most 0.4 of a refusal by ants",
		"our refusal/one by ants", "time/ants' is at most 0.4", .4)
	PoolsRefusalTime = Claim{
		ID: "pools/3-time", Title: "and at most 10 ns", Published: "a goal of this project, no published figure", HoldsIf: "time is at most 10 ns",
		Question: judge.Question{Subject: "the time of a refusal", Unit: "ns", Figure: judge.Mean, Rule: judge.AtMost(10)},
		Source:   sourcePools,
		Note:     "An absolute time: it depends on the machine more than the ratios do, and on what else the machine does.",
	}
	PoolsRefusalAllocs = poolsPeak("3-allocs", "and no allocation", "allocations of a refusal")

	PoolsCall = poolsRatio("4-channel", "a typed result takes at most 1.15 of one over a channel that its client uses again",
		"our call/one over a channel", "time/channel's is at most 1.15", 1.15)
	PoolsCallTunny = poolsRatio("4-tunny", "and at most 0.55 of one by tunny",
		"our call/one by tunny", "time/tunny's is at most 0.55", .55)
	PoolsCallPond = poolsRatio("4-pond", "and at most 0.15 of a future of pond",
		"our call/a future of pond", "time/pond's is at most 0.15", .15)
	PoolsCallAllocs = poolsPeak("4-allocs", "and no allocation beyond the caller's closure", "allocations of a call")

	PoolsShort = poolsRatio("5-short", "1 µs jobs take at most 1.05 of the best peer's time",
		"our time/the best peer's", "time/best peer's is at most 1.05", 1.05)
	PoolsLong = poolsRatio("5-long", "20 µs jobs take at most 1.02 of the best peer's time",
		"our time/the best peer's", "time/best peer's is at most 1.02", 1.02)

	PoolsBurstFinish = poolsRatio("6-finish", "a million jobs of 10 ms on 5,000 workers end within 1.10 of the ideal",
		"time to the end/ideal", "time/jobs × work ÷ workers is at most 1.1", 1.1)
	PoolsBurstCPU = poolsRatio("6-cpu", "with at most 0.9 of the bare channel's processor time",
		"our processor time/the channel's", "processor time/channel's is at most 0.9", .9)
	PoolsBurstMemory = poolsRatio("6-memory", "and at most 1.2 of its peak memory",
		"our peak memory/the channel's", "peak memory/channel's is at most 1.2", 1.2)
	PoolsBurstLeft = poolsPeak("6-left", "and no worker is left after the idle timeout", "workers left")

	// PoolsSizing takes the share, in per cent, of the best fixed size's jobs a
	// second that ended in time. It may be 0, which has no ratio.
	PoolsSizing = Claim{
		ID: "pools/sizing", Title: "5 s after the start and after each change a pool without a number gets within 25 % of the best fixed size",
		Published: "a goal of this project, no published figure", HoldsIf: "goodput is at least 75 % of the best fixed size's",
		Question: judge.Question{Subject: "goodput without a number, of the best fixed size's,", Unit: "%", Figure: judge.Mean, Rule: judge.AtLeast(75)},
		Source:   sourcePools,
		Note:     "The best fixed size is picked afterwards, for each kind of work and for each side of the change, which no operator can do.",
	}
)
