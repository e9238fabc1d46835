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
	switch verdict {
	case advice.Supported:
		return kind(results.Holds)
	case advice.Contradicted:
		return kind(results.Fails)
	case advice.Undecided:
		return kind(results.Inconclusive)
	}
	return kind("")
}

// Anchor is where the page says more about a cited claim; empty: nowhere.
func (s *session) Anchor(cited string) string { return anchor(s.Results.Claims, cited) }
func (w *whole) Anchor(cited string) string   { return anchor(w.claims(), cited) }

func anchor(claims []results.Claim, cited string) string {
	id, _, _ := strings.Cut(cited, "/")
	return pick(slices.ContainsFunc(claims, func(c results.Claim) bool { return c.ID == id }), id, "")
}
