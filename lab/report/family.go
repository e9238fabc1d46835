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
