package claims

import (
	"fmt"

	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

const sourceG = "gsarmaonline, github.com/gsarmaonline/golang-measurements and its article (2026 update)"

// G is the shapes of giving one unit of work, an integer addition whose result must
// reach the caller, to a goroutine: no goroutine (serial), a goroutine for each unit
// with a channel or a WaitGroup, workers on one channel or with a channel each.
// Figures are nanoseconds per unit. The size of the channels' buffers, which the
// source does not state, is the set-up.
var G = Family{
	ID:     "G",
	Title:  "What it costs to hand work to a goroutine",
	Source: sourceG,
	Claims: []Claim{
		G1, G2, G3Faster, G3Allocs, G4Loses, G4Wins, G5, G6Of("pool"), G6Of("semaphore"), G6Of("dispatch"), G8Higher, G8Lower, G9,
	},
}

// G1 takes pairs: A the fastest concurrent shape, B serial.
var G1 = Claim{
	ID:        "G1",
	Title:     "everything above serial is synchronization",
	Published: "0.23 ns serial, 74 ns the fastest concurrent shape",
	HoldsIf:   "every concurrent shape takes at least 100x the serial time",
	Question: judge.Question{
		Subject: "the fastest concurrent shape/serial time of a unit", Unit: "x",
		Figure: judge.Ratio, Rule: judge.AtLeast(100),
	},
	Source: sourceG,
}

// G2 takes pairs: A SpawnPerRequestWG, B SpawnPerRequestChan.
var G2 = Claim{
	ID:        "G2",
	Title:     "taking the channel out of spawn-per-request about halves its cost",
	Published: "280 ns, 160 B, 3 allocs → 131 ns, 56 B, 2 allocs",
	HoldsIf:   "SpawnPerRequestWG/SpawnPerRequestChan is 0.4–0.6",
	Question: judge.Question{
		Subject: "SpawnPerRequestWG/SpawnPerRequestChan", Unit: "x",
		Figure: judge.Ratio, Rule: judge.Between(.4, .6),
	},
	Source: sourceG,
	Note:   "The channel version also waits for each result before it starts the next goroutine; the WaitGroup waits once, at the end.",
}

const publishedG3 = "96 ns, 0 B, 0 allocs at 10 workers, against 131 ns"

// G3Faster takes pairs: A the pool, B SpawnPerRequestWG.
var G3Faster = Claim{
	ID:        "G3/faster",
	Title:     "a pool near GOMAXPROCS beats spawning",
	Published: publishedG3,
	HoldsIf:   "PoolSharedChan/SpawnPerRequestWG is below 1",
	Question: judge.Question{
		Subject: "PoolSharedChan/SpawnPerRequestWG", Unit: "x",
		Figure: judge.Ratio, Rule: judge.Below(1),
	},
	Source: sourceG,
	Note:   "Ten workers were near GOMAXPROCS on the published machine of ten cores. Judged at ten and at GOMAXPROCS.",
}

// G3Allocs takes each repeat's whole allocations for a unit, as benchmarks
// print them.
var G3Allocs = Claim{
	ID:        "G3/allocs",
	Title:     "a pool near GOMAXPROCS allocates nothing",
	Published: publishedG3,
	HoldsIf:   "0 allocations a unit",
	Question: judge.Question{
		Subject: "allocations of a unit in PoolSharedChan", Figure: judge.Peak, Rule: judge.AtMost(0),
	},
	Source: sourceG,
}

const publishedG4 = "244 ns at 1,000 workers (193 at 100) vs 131 without a channel and 280 with one"

// G4Loses takes pairs: A the pool of 1,000, B SpawnPerRequestWG.
var G4Loses = Claim{
	ID:        "G4/loses",
	Title:     "a pool of 1,000 workers loses to spawning without a channel",
	Published: publishedG4,
	HoldsIf:   "PoolSharedChan_1000/SpawnPerRequestWG is above 1",
	Question: judge.Question{
		Subject: "PoolSharedChan_1000/SpawnPerRequestWG", Unit: "x",
		Figure: judge.Ratio, Rule: judge.Above(1),
	},
	Source: sourceG,
}

// G4Wins takes pairs: A the pool of 1,000, B SpawnPerRequestChan.
var G4Wins = Claim{
	ID:        "G4/wins",
	Title:     "a pool of 1,000 workers beats spawning with a channel",
	Published: publishedG4,
	HoldsIf:   "PoolSharedChan_1000/SpawnPerRequestChan is below 1",
	Question: judge.Question{
		Subject: "PoolSharedChan_1000/SpawnPerRequestChan", Unit: "x",
		Figure: judge.Ratio, Rule: judge.Below(1),
	},
	Source: sourceG,
}

// G5 takes pairs at 100 workers: A one channel each, B one shared channel.
var G5 = Claim{
	ID:        "G5",
	Title:     "one channel for each worker beats a shared channel",
	Published: "74 vs 193 ns at 100 workers",
	HoldsIf:   "PoolPerWorkerChan_100/PoolSharedChan_100 is below 0.9",
	Question: judge.Question{
		Subject: "PoolPerWorkerChan_100/PoolSharedChan_100", Unit: "x",
		Figure: judge.Ratio, Rule: judge.Below(.9),
	},
	Source: sourceG,
}

// G6Of takes pairs of tasks a second of CPU-bound work under that bound: A the
// best bound within half and twice GOMAXPROCS, B the best one outside of that;
// the A/A pairs are twins of the former.
func G6Of(mechanism string) Claim {
	return Claim{
		ID:        "G6/" + mechanism,
		Title:     fmt.Sprintf("CPU-bound work: as many goroutines as GOMAXPROCS are best, bounded by a %s", mechanism),
		Published: "a rule, no figure",
		HoldsIf:   "the best bound within 0.5–2x GOMAXPROCS does more than any other, beyond the noise floor",
		Question: judge.Question{
			Subject: "tasks a second at the best bound within 0.5–2x GOMAXPROCS/at the best other bound", Unit: "x",
			Figure: judge.Ratio, Rule: judge.HigherThanNoise(),
		},
		Source: sourceG,
		Note:   "All bounds from GOMAXPROCS upwards keep the processors busy, so that the best of them is often a matter of luck. That is why a difference has to exceed what the same bound differs from itself.",
	}
}

const (
	publishedG8 = "a million units by the wall clock (M1 Max): spawning 444 ms, pools of 10, 100 and 1,000 167, 273 and 386 ms; with a channel each, of 100 and 1,000 workers, 228 and 310 ms"
	noteG8      = "The published batches from a million to a billion agree within 5 % for a unit: their fixed size was not the fault."
)

// G8Higher takes pairs of ratios of SpawnPerRequestChan to a pool: A of a fixed
// batch by the wall clock, B auto-scaled; the A/A pairs are such ratios of twins
// by the wall clock.
var G8Higher = Claim{
	ID:        "G8/higher",
	Title:     "by the wall clock a pool looks better",
	Published: publishedG8,
	HoldsIf:   "spawning/pool is higher by the wall clock than auto-scaled, beyond the noise floor",
	Question: judge.Question{
		Subject: "spawning/pool by the wall clock, over the same auto-scaled,", Unit: "x",
		Figure: judge.Ratio, Rule: judge.HigherThanNoise(),
	},
	Source: sourceG,
	Note:   noteG8,
}

// G8Lower is the reverse of G8Higher.
var G8Lower = Claim{
	ID:        "G8/lower",
	Title:     "by the wall clock a pool looks worse",
	Published: publishedG8,
	HoldsIf:   "spawning/pool is lower by the wall clock than auto-scaled, beyond the noise floor",
	Question: judge.Question{
		Subject: "spawning/pool by the wall clock, over the same auto-scaled,", Unit: "x",
		Figure: judge.Ratio, Rule: judge.LowerThanNoise(),
	},
	Source: sourceG,
	Note:   noteG8,
}

// G8 is the whole claim, which either part satisfies: the methods disagree. If no
// disagreement is measured it stays open.
func G8(higher, lower results.OldClaim) results.OldClaim {
	whole := higher
	if lower.Verdict == results.Holds {
		whole = lower
	}
	whole.Verdict = judge.Any(higher.Verdict, lower.Verdict)
	whole.ID = "G8"
	whole.Title = "timing fixed batches by the wall clock misleads"
	whole.Rule = "the ratio of spawning to the pool differs between the methods, beyond the noise floor"
	return whole
}

// G9 takes pairs of processor time for a request, in microseconds: A what
// reusing objects saves on top of a pool of goroutines, B what that pool saves
// over spawning; the A/A pairs are twins of the pool.
var G9 = Claim{
	ID:        "G9",
	Title:     "once concurrency is bounded, pooling objects saves more than pooling goroutines",
	Published: "a rule, no figure",
	HoldsIf:   "object reuse saves more processor time a request than goroutine reuse, beyond the noise floor",
	Question: judge.Question{
		Subject: "what object reuse saves − what goroutine reuse saves", Unit: "µs",
		Figure: judge.Difference, Rule: judge.HigherThanNoise(),
	},
	Source: sourceG,
}
