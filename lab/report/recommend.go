package report

import (
	"unicode"
	"unicode/utf8"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/results"
)

// recommendation is published advice with our verdict on it.
type recommendation struct {
	For, Use string
	Answer   string
	Class    string
	Cited    []results.OldClaim
	Missing  []string // claims it rests on that were not judged here
}

// recommend judges a family's advice by the claims that were decided.
func recommend(f claims.Family, decided []results.OldClaim) []recommendation {
	var out []recommendation
	for _, published := range f.Recommendations {
		a := published.Judge(decided)
		r := recommendation{For: sentence(a.For), Use: a.Use, Class: verdictClass(a.Verdict)}
		switch a.Verdict {
		case results.Holds:
			r.Answer = "Our measurement supports this."
		case results.Fails:
			r.Answer = "Our measurement does not support this."
		default:
			r.Answer = "Our measurement does not decide this."
		}
		for _, id := range published.RestsOn {
			n := len(r.Cited)
			for _, c := range decided {
				if c.ID == id {
					r.Cited = append(r.Cited, c)
				}
			}
			if len(r.Cited) == n {
				r.Missing = append(r.Missing, id)
			}
		}
		out = append(out, r)
	}
	return out
}

// sentence begins with a capital.
func sentence(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 || r == utf8.RuneError {
		return s
	}
	return string(unicode.ToUpper(r)) + s[n:]
}
