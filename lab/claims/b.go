package claims

import (
	"fmt"

	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

const (
	sourceB     = "iyashjayesh, github.com/iyashjayesh/go-adaptive-pool and its article on a million requests a second"
	sourceBurst = "Spillway's own promise"
)

// B is a burst of 1,000,000 jobs a second for 30 seconds by 1,000 generators.
// A job allocates 500 KB, touches every page of it and takes another 20 ms. The
// published pool has 100 to 5,000 workers, grows by a quarter when its queue of
// 100,000 is 70 % full, and refuses by a timeout of a microsecond. The claims
// are judged for it and for other bounded contestants; "the pool" below is the
// one of the set-up.
//
// Claims of the family that end in a word are promises of this project about
// its own pool under the same burst.
var B = Family{
	ID:     "B",
	Title:  "A burst of one million jobs a second",
	Source: sourceB,
	Claims: []Claim{
		B1Memory, B1Killed, B2, B3, B4Of(5000, 1000), B5Refused, B5Prompt, B6Naive, B6Pool,
		BJobs, BMemory, BLatency, BRefusals,
	},
}

const publishedB1 = "50.86 GB vs 1.41 GB (36x)"

// B1Memory takes pairs of peak resident memory: A naive, B the pool.
var B1Memory = Claim{
	ID:        "B1/memory",
	Title:     "a goroutine for each job takes tens of times the memory of the pool",
	Published: publishedB1,
	HoldsIf:   "naive/pool peak resident memory is at least 10x",
	Question: judge.Question{
		Subject: "naive/pool peak resident memory", Unit: "x",
		Figure: judge.Ratio, Rule: judge.AtLeast(10),
	},
	Source: sourceB,
	Note:   "The published \"peak RAM\" is what the runtime had reserved, looked at once a second. Of a naive run that was killed, the ratio is a lower bound: how far it would have gone is unknown.",
}

// B1Killed takes 100 for a repeat in which naive was killed by the memory cap
// and the pool was not, else 0.
var B1Killed = Claim{
	ID:        "B1/killed",
	Title:     "a goroutine for each job needs more memory than there is, the pool does not",
	Published: "the published naive run stops itself above 12 GB",
	HoldsIf:   "naive is killed by the memory cap in every repeat, and the pool never",
	Question: judge.Question{
		Subject: "the share of repeats in which naive was killed by the memory cap and the pool was not", Unit: "%",
		Figure: judge.Mean, Rule: judge.AtLeast(100),
	},
	Source: sourceB,
}

// B1 is the claim as a whole, which one of its halves satisfies.
func B1(memory, killed results.OldClaim) results.OldClaim {
	whole := memory
	whole.Verdict = judge.Any(memory.Verdict, killed.Verdict)
	if killed.Verdict == whole.Verdict && memory.Verdict != whole.Verdict {
		whole = killed
	}
	whole.ID, whole.Published = "B1", publishedB1
	whole.Title = "unbounded spawning takes tens of times the memory of the pool"
	whole.Rule = "at least 10x the peak resident memory, or killed by the cap"
	whole.Why = fmt.Sprintf("Memory %s and killed %s: %s", memory.Verdict, killed.Verdict, whole.Why)
	return whole
}

// B2 takes pairs of jobs finished in the whole burst: A the pool, B naive, until its
// end if it was killed.
var B2 = Claim{
	ID:        "B2",
	Title:     "the pool finishes 4.6x as many jobs",
	Published: "4.6x",
	HoldsIf:   "pool/naive finished jobs is at least 3x at equal offered load",
	Question: judge.Question{
		Subject: "pool/naive jobs finished", Unit: "x",
		Figure: judge.Ratio, Rule: judge.AtLeast(3),
	},
	Source: sourceB,
	Note:   "The published naive run sleeps 10 µs before each submission and stops itself above 12 GB, so that 4.6x compares two loads. Here both are offered the same.",
}

// B3 takes pairs of the mean time from submission to the end of the finished
// jobs: A naive, B the pool.
var B3 = Claim{
	ID:        "B3",
	Title:     "mean latency in the burst is an order of magnitude lower with the pool",
	Published: "2,063 vs 161 ms (13x)",
	HoldsIf:   "naive/pool mean latency from submission is at least 5x",
	Question: judge.Question{
		Subject: "naive/pool mean latency from submission", Unit: "x",
		Figure: judge.Ratio, Rule: judge.AtLeast(5),
	},
	Source: sourceB,
	Note:   "The published latency starts when the job starts: the time in a queue of 100,000 is not in it. Here it starts with the submission.",
}

// B4Of takes each repeat's peak of goroutines of a pool with that many workers
// at most, offered the burst by that many generators.
func B4Of(workers, generators int) Claim {
	const besides = 50 // goroutines of the runtime and of the experiment
	most := workers + generators + besides
	return Claim{
		ID:        "B4",
		Title:     "goroutines stay at the cap of the pool",
		Published: "104,473 vs 5,002 at a cap of 5,000",
		HoldsIf:   fmt.Sprintf("the peak is at most %d workers + %d generators + %d", workers, generators, besides),
		Question: judge.Question{
			Subject: "the peak of goroutines", Figure: judge.Peak, Rule: judge.AtMost(float64(most)),
		},
		Source: sourceB,
		Note:   "The published figure of the pool is the number of goroutines at the end of the run, not the peak.",
	}
}

// B5Refused takes the refused share of the offered jobs, in per cent.
var B5Refused = Claim{
	ID:        "B5/refused",
	Title:     "most of the offered work is refused",
	Published: "31 million refused",
	HoldsIf:   "at least 50 % of the offered jobs are refused",
	Question: judge.Question{
		Subject: "the refused share of the offered jobs", Unit: "%",
		Figure: judge.Mean, Rule: judge.AtLeast(50),
	},
	Source: sourceB,
}

// B5Prompt takes the p99 of the time a refusal took, in milliseconds.
var B5Prompt = Claim{
	ID:        "B5/prompt",
	Title:     "a refusal comes at once",
	Published: "refused by a timeout of 1 µs; no figure of how long it took",
	HoldsIf:   "p99 of a refusal is below 1 ms",
	Question: judge.Question{
		Subject: "p99 of a refusal", Unit: "ms",
		Figure: judge.Mean, Rule: judge.Below(1),
	},
	Source: sourceB,
}

const (
	publishedB6 = "\"near-zero\" under naive; no figure"
	noteB6      = "Work is allocating and touching the buffer, less what the collector made the job do for it; measured by the processor clock of the thread around a sample of the jobs."
)

// B6Naive takes naive's share of processor time spent in the jobs, in per cent.
var B6Naive = Claim{
	ID:        "B6/naive",
	Title:     "naive hardly spends its processor time on work",
	Published: publishedB6,
	HoldsIf:   "work is below 25 % of the processor time",
	Question: judge.Question{
		Subject: "the share of work in naive's processor time", Unit: "%",
		Figure: judge.Mean, Rule: judge.Below(25),
	},
	Source: sourceB,
	Note:   noteB6,
}

// B6Pool takes the pool's share of processor time spent in the jobs, in per
// cent.
var B6Pool = Claim{
	ID:        "B6/pool",
	Title:     "the pool mostly spends its processor time on work",
	Published: publishedB6,
	HoldsIf:   "work is above 50 % of the processor time",
	Question: judge.Question{
		Subject: "the share of work in the pool's processor time", Unit: "%",
		Figure: judge.Mean, Rule: judge.Above(50),
	},
	Source: sourceB,
	Note:   noteB6,
}

// BJobs takes pairs of jobs finished a second: A ours with reused buffers, B the
// published pool's shape.
var BJobs = Claim{
	ID:        "B/jobs",
	Title:     "with reused buffers Spillway finishes ten times the jobs a second of the published shape",
	Published: "at least 10x",
	HoldsIf:   "Spillway/published shape jobs a second is at least 10x",
	Question: judge.Question{
		Subject: "Spillway/published shape jobs a second", Unit: "x",
		Figure: judge.Ratio, Rule: judge.AtLeast(10),
	},
	Source: sourceBurst,
}

// BMemory takes pairs of peak resident memory: A ours with reused buffers, B the
// published pool's shape.
var BMemory = Claim{
	ID:        "B/memory",
	Title:     "with reused buffers Spillway takes at most half the memory of the published shape",
	Published: "at most 0.5x",
	HoldsIf:   "Spillway/published shape peak resident memory is at most 0.5x",
	Question: judge.Question{
		Subject: "Spillway/published shape peak resident memory", Unit: "x",
		Figure: judge.Ratio, Rule: judge.AtMost(0.5),
	},
	Source: sourceBurst,
	Note:   "A job holds its buffer for as long as it runs, so memory is the number of jobs that ever ran at once. A pool without a number runs as many as pay, and knows nothing of memory; MaxWorkers bounds both.",
}

// BLatency takes pairs of milliseconds: A the mean from submission to the end of
// the finished jobs, B the time a job takes alone.
var BLatency = Claim{
	ID:        "B/latency",
	Title:     "whatever Spillway admits is done in at most twice the time of the work",
	Published: "at most 2x",
	HoldsIf:   "mean latency from submission/the work itself is at most 2x",
	Question: judge.Question{
		Subject: "mean latency from submission/the work itself", Unit: "x",
		Figure: judge.Ratio, Rule: judge.AtMost(2),
	},
	Source: sourceBurst,
	Note:   "What cannot be served in time is refused at once.",
}

// BRefusals takes the share, in per cent of the machine's processors over the
// burst, that its submissions took. Nearly all of them are refusals.
var BRefusals = Claim{
	ID:        "B/refusals",
	Title:     "refusing takes at most a twentieth of the processors",
	Published: "at most 5 %",
	HoldsIf:   "submissions take at most 5 % of the processors during the burst",
	Question: judge.Question{
		Subject: "the share of the processors that submissions took", Unit: "%",
		Figure: judge.Mean, Rule: judge.AtMost(5),
	},
	Source: sourceBurst,
	Note:   "Accepted submissions are in it too.",
}
