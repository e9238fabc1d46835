package report

import (
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/advice"
	"github.com/spillway-go/spillway/lab/results"
)

// Advice answers those questions of which the experiment judged something.
func (s *session) Advice() []results.Advice {
	return slices.DeleteFunc(advice.Of([]results.Results{s.Results}), func(a results.Advice) bool { return len(a.Cites) == 0 })
}

// standing is how advice is shown, by what the verdicts make of it.
func standing(verdict string) looks {
	return kind(map[string]results.Verdict{advice.Supported: results.Holds, advice.Contradicted: results.Fails, advice.Undecided: results.Inconclusive}[verdict])
}

// Anchor is where the page says more about a cited claim; empty: nowhere.
func (s *session) Anchor(cited string) string {
	id, _, _ := strings.Cut(cited, "/")
	return pick(slices.ContainsFunc(s.Results.Claims, func(c results.Claim) bool { return c.ID == id }), id, "")
}
