package patterns

import (
	"fmt"
	"time"

	"github.com/spillway-go/spillway/lab/judge"
	"github.com/spillway-go/spillway/lab/ledger"
)

// rule is the published rule of thumb for a pool over a store.
type rule struct {
	part        string // of H5
	least, most int    // workers for each core
	queue       int    // places for each worker
	series
}

var rules = []rule{
	{"1ms", 2, 4, 5, series{setup: "a store of 1 ms", axis: "workers", latency: time.Millisecond}},
	{"75ms", 2, 4, 5, series{setup: "a store of 75 ms", axis: "workers", latency: 75 * time.Millisecond}},
	{"500ms", 2, 4, 5, series{setup: "a store of 500 ms", axis: "workers", latency: 500 * time.Millisecond}},
	{"cpu", 1, 1, 2, series{setup: "look-ups that compute", axis: "workers", latency: 200 * time.Microsecond, compute: true}},
}

// load names the pool with so many workers.
func (r rule) load(workers int) string {
	return fmt.Sprintf("%d workers, queue %d", workers, r.queue*workers)
}

// words is the rule as a sentence about this store.
func (r rule) words() string {
	if r.least == r.most {
		return fmt.Sprintf("for %s a worker for each core comes within 10 %% of the best size", r.setup)
	}
	return fmt.Sprintf("over %s %d to %d workers for each core come within 10 %% of the best size", r.setup, r.least, r.most)
}

// best compares the better of the rule's sizes with the best of all, and beside it, where
// it was published for such a store, the example for eight cores.
func (r rule) best(e *ledger.Evidence) []ledger.Case {
	cores := 8 // as published
	if n := e.Param("gomaxprocs"); n >= 1 {
		cores = int(n)
	}
	good := func(workers int) ledger.Term { return of(r.setup, r.load(workers), WorkerPool, ledger.Goodput) }
	var ruled []ledger.Term
	for times := r.least; times <= r.most; times++ {
		ruled = append(ruled, good(times*cores))
	}
	most := ledger.Best(append(e.All(ledger.Goodput, func(k ledger.Key) bool { return k.Setup == r.setup }), ruled...)...)
	cases := []ledger.Case{{Setup: Shape + ", " + r.sizes(cores), Value: ledger.Best(ruled...).Over(most)}}
	if !r.compute {
		cases = append(cases, ledger.Case{Setup: fmt.Sprintf("%s, %d workers", Shape, publishedWorkers), Value: good(publishedWorkers).Over(most), Beside: true})
	}
	return cases
}

func (r rule) sizes(cores int) string {
	if r.least == r.most {
		return fmt.Sprintf("%d workers", r.least*cores)
	}
	return fmt.Sprintf("%d to %d workers", r.least*cores, r.most*cores)
}

var claimOfSizes = ledger.Claim{ID: "H5", Title: "the cores decide the size of a pool: 2–4 workers for each over a store that waits, one where look-ups compute",
	Published: "I/O-bound: workers = 2–4 × cores, queue = 5 × workers; CPU-bound: workers = cores, queue = 2 × workers; 8 cores: 30 workers, a queue of 150; no figure",
	Note:      "A worker over a store that waits uses next to no processor. How many of them are best follows from how long the store takes, how much it bears and how much is asked for, not from the cores: over a store without a bound of its own each worker adds as much as the one before, until there are as many as clients or the processors are busy. The rule's best size counts, so that it has every advantage.",
	Parts:     partsOfSizes(),
}

func partsOfSizes() (out []ledger.Part) {
	for _, r := range rules {
		out = append(out, ledger.Part{ID: r.part, Title: r.words(), Subject: "goodput of the rule's size/that of the best", Unit: "x", Rule: judge.AtLeast(0.9), Spread: 0.03, Cases: r.best})
	}
	return out
}
