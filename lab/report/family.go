package report

import (
	"strings"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/ledger"
)

// families is what a report says about the experiments whose declarations do not say it
// yet, by id.
var families = map[string]ledger.Family{
	"H": {
		Sources: []ledger.Source{{
			Name: "Stella-Achar-Oiro/healthcare-api-benchmark",
			URL:  "https://github.com/Stella-Achar-Oiro/healthcare-api-benchmark",
			What: "and the article that goes with it",
		}},
		Method: []ledger.Note{
			{Title: "Refusals are not throughput", Text: "The published harness counts every answer, and a refusal is an answer. A refusal is also counted as an error, and its latency goes into the same figures as a served request. Here four outcomes are kept apart everywhere, and goodput (requests that got their patient) is the headline."},
			{Title: "What the slots can do", Text: "By Little's law a pool cannot answer more than workers × (1 − error rate) ÷ mean store latency. Twenty workers, 5 % errors and a store of 50–100 ms make 20 × 0.95 ÷ 0.075 s ≈ 253 good requests a second, whatever the load. A pool that shows 2,000 a second at high load is refusing the rest."},
			{Title: "The share refused is set by the set-up", Text: "In a closed loop each client sends its quota back to back. Clients that are refused come back at once and burn their quota early; the few that hold slots do the rest. With 1,000 clients and 120 places (20 workers, a queue of 100) about 880 clients burn out: 88 %. Another quota or another number of clients gives another share."},
			{Title: "A closed loop hides waiting", Text: "When the service stalls, a client that waits does not send. The requests that would have arrived in the meantime are missing from the figures. The loads of this experiment are closed loops all the same, as published, so that the figures can be compared; read the latencies with that in mind."},
			{Title: "In process or over HTTP", Text: "The published load test calls a function; the published HTTP handler is different code and refuses at once instead of after 100 ms. Both set-ups are run here: “as published” is the function call, “for real” is a server in its own process with HTTP and a database."},
			{Title: "What the hit counter counts", Text: "The published reuse rate counts every Get as a hit and is diluted by the error path, the only one that gives an object back. A pool that never reuses anything would report about 51 %. Here reuse is counted where it happens: a Get that was answered by an earlier Put."},
			{Title: "Scaled runs", Text: "Runs shorter than the published ones cut requests, never clients, workers or queue places, because those decide what is refused."},
		},
	},
	"pools": {
		Columns: []ledger.Column{
			{Key: "ns", Name: "time for each", Format: "nanos"}, {Key: "allocs", Name: "allocations for each", Format: "decimals"}, {Key: "behind", Name: "Spillway's time/this one's", Format: "ratio"},
			{Key: "worker_bytes", Name: "of an idle worker", Format: "size"}, {Key: "job_bytes", Name: "of a queued job", Format: "size"},
			{Key: "finish", Name: "time/ideal", Format: "ratio"}, {Key: "cpu_seconds", Name: "processor s", Format: "decimals"}, {Key: "peak_rss", Name: "peak RSS", Format: "size"}, {Key: "peak_goroutines", Name: "peak goroutines"}, {Key: "left", Name: "workers left"},
		},
		Behind: "behind",
		Method: []ledger.Note{
			{Title: "In turns", Text: "The contestants of one table, all numbers of workers included, take turns in one process, in a new order each round. Before each turn the contestant is made, warmed and the heap collected; afterwards it is ended. Ratios are taken within a round, of which the median counts; the verdict's interval is over repeats. Spillway runs twice: its difference from itself is the noise floor. Every round of every contestant is in runs.jsonl."},
			{Title: "1→2", Text: "The columns are producers→workers. A producer is a goroutine that submits; with more than one, all begin at the same moment."},
			{Title: "The queue", Text: "Every bounded queue has the same number of places, 1,024 unless the command says otherwise. A bare channel's figures move several times over with that number. Spillway counts, measures waits and catches panics while it is compared with a channel that does not."},
			{Title: "Contestants without a queue", Text: "semaphore, errgroup, ants and conc make the submitter wait until a worker is free; gammazero's queue has no bound, so its submitters never wait. tunny only calls and appears where results are waited for; conc and gammazero cannot refuse."},
			{Title: "When a job counts", Text: "The end of a job is not reported, except for the last one of each producer: a counter that all jobs share would cost as much as what is measured. A turn ends when those have ended."},
			{Title: "Refusals", Text: "Workers and queue are full of jobs that do not end. Every submission must be refused, or there is no figure; Spillway's own count must agree. The bare try-send counts nothing."},
			{Title: "Memory", Text: "Live heap and stacks after two collections, divided by 1,000 workers that have run once, and by 100,000 jobs behind two busy workers. Contestants without idle workers or without a queue have no figure."},
			{Title: "Burst", Text: "Each contestant has a process of its own. The ideal is jobs × work ÷ workers. Left are goroutines 2.5 idle timeouts after the last job; a bare channel's workers stay by design."},
			{Title: "Sizing", Text: "Jobs arrive in an open loop and are of use only if they end within 200 ms; a full pool refuses. The work changes once. What computes is offered 1.5 times what the processors can do, and 3 times after the change; what waits takes 20 ms at 1,000 a second, then 80 ms; mixed work computes 2 ms and waits as long. What computes lets others run every 100 µs, for the generator shares its process. Fixed sizes are swept in powers of two; one is told before the start, has MinWorkers = MaxWorkers and every other default."},
		},
	},
}

// legacy adds to a declaration what is still kept here.
func legacy(declared ledger.Family) ledger.Family {
	if len(declared.Claims) > 0 {
		return declared
	}
	f, kept := families[declared.ID]
	if !kept {
		f = declared
	}
	f.ID, f.Title = declared.ID, declared.Title
	for _, known := range claims.Families {
		if known.ID != f.ID {
			continue
		}
		for _, c := range known.Claims {
			f.Claims = append(f.Claims, ledger.Claim{ID: c.ID, Note: c.Note})
		}
		for _, r := range known.Recommendations {
			advice := ledger.Recommendation{For: r.For, Use: r.Use}
			for _, id := range r.RestsOn {
				id, _, _ = strings.Cut(id, "/")
				advice.RestsOn = append(advice.RestsOn, id)
			}
			f.Recommendations = append(f.Recommendations, advice)
		}
	}
	return f
}
