package patterns

import (
	"fmt"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/postgres"
	"github.com/spillway-go/spillway/load/judge"
)

// rule is the published rule of thumb for a pool over a store.
type rule struct {
	part        string // of H5
	least, most int    // workers for each core
	queue       int    // places for each worker
	remark      string // beside the verdict
	missing     string // why the store was not measured, as a sentence
	series
}

// rules are the stores that have a capacity.
var rules = []rule{
	{"model", 2, 4, 5, "This is of a model of a database, in virtual time.", "", series{setup: "a model of 100 slots", axis: "workers", latency: 75 * time.Millisecond, store: modelled}},
	{"sqlite", 2, 4, 5, "", "", series{setup: "SQLite, look-ups", axis: "workers", store: onSQLite}},
	{"postgres", 2, 4, 5, "", "PostgreSQL was not measured: name a server with --postgres, or set " + postgres.Env + ".", series{setup: OnPostgres + ", look-ups", axis: "workers", store: onServer}},
	{"cpu", 1, 1, 2, "", "", series{setup: "look-ups that compute", axis: "workers", latency: 200 * time.Microsecond, store: computing}},
}

// boundless is a store in which any number of look-ups wait beside each other.
var boundless = rule{"", 2, 4, 5, "Such a store has no capacity: its best size is the largest that was tried.", "", series{setup: "a store of 75 ms", axis: "workers", latency: 75 * time.Millisecond}}

// queues are the places for each worker that are compared.
var queues = []int{0, 2, 5, 20}

func ofQueue(times int) string { return fmt.Sprintf("queue %d × workers", times) }

// key is the pool with so many workers and places for each of them.
func (r rule) key(workers, places int) ledger.Key {
	return ledger.Key{Setup: r.setup, Load: fmt.Sprintf("%d workers", workers), Pattern: ofQueue(places)}
}

// words is the rule as a sentence about this store.
func (r rule) words() string {
	if r.least == r.most {
		return fmt.Sprintf("for %s a worker for each core comes within 10 %% of the best size", r.setup)
	}
	return fmt.Sprintf("over %s %d to %d workers for each core come within 10 %% of the best size", r.setup, r.least, r.most)
}

// best compares the better of the rule's sizes, each with the rule's queue, with the best of
// all sizes and queues; beside it stands the published example for eight cores.
func (r rule) best(e *ledger.Evidence) []ledger.Case {
	cores := 8 // as published
	if n := e.Param("gomaxprocs"); n >= 1 {
		cores = int(n)
	}
	good := func(workers int) ledger.Term { return ledger.Of(r.key(workers, r.queue), ledger.Goodput) }
	var ruled []ledger.Term
	for times := r.least; times <= r.most; times++ {
		ruled = append(ruled, good(times*cores))
	}
	measured := func(k ledger.Key) bool { return k.Setup == r.setup }
	most := ledger.Best(slices.Concat(e.All(ledger.Goodput, measured), ruled, []ledger.Term{good(publishedWorkers)})...)
	decides := ledger.Case{Setup: r.setup + ", " + r.sizes(cores), Value: ledger.Best(ruled...).Over(most), Remark: r.remark}
	if len(e.Keys(measured)) == 0 {
		decides.Open = r.missing
	}
	cases := []ledger.Case{decides}
	if r.least < r.most {
		cases = append(cases, ledger.Case{Setup: fmt.Sprintf("%s, %d workers", r.setup, publishedWorkers), Value: good(publishedWorkers).Over(most), Beside: true})
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
	Note:      "A worker over a store that waits uses next to no processor. How many of them are best follows from how much the store bears, not from the cores. The rule's best size counts, so that it has every advantage; it is compared with the best of all sizes and queues. A store without a capacity stands beside and decides nothing: there each worker adds as much as the one before, so that its best size is always the largest.",
	Parts:     partsOfSizes(),
}

func partsOfSizes() (out []ledger.Part) {
	for _, r := range rules {
		cases := r.best
		if r.store == modelled {
			cases = func(e *ledger.Evidence) []ledger.Case {
				beside := slices.Clone(boundless.best(e))
				beside[0].Beside = true
				return append(r.best(e), beside...)
			}
		}
		out = append(out, ledger.Part{ID: r.part, Title: r.words(), Subject: "goodput of the rule's size/that of the best", Unit: "x", Rule: judge.AtLeast(0.9), Spread: 0.03, Cases: cases})
	}
	return out
}
