// Package advice answers the questions that an engineer has by what was decided on this
// machine. Each rule is a row: the question, what is advised and by whom, and the claims it
// rests on. A rule whose claims did not hold says so, and what follows instead. What was not
// judged is cited nowhere.
package advice

import (
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

// Rule is one question.
type Rule struct {
	Question string
	Source   string // who advises it; empty: we do
	Says     string // the advice, whole sentences
	Rests    []Basis
}

// Basis is what a rule rests on: a claim with one part, or a part. A claim with several parts would
// give one reason for all of them.
type Basis struct {
	Claim     string // "H2/refused", or "G1" for a claim with one part
	Otherwise string // what follows if it fails, whole sentences
}

// What becomes of a rule.
const (
	Supported    = "supported"    // everything that it rests on holds
	Contradicted = "contradicted" // something that it rests on fails
	Undecided    = "undecided"    // it was judged and is open
	NotJudged    = "not judged"   // not all of it was judged
)

// Of is every rule's advice by these experiments.
func Of(parts []results.Results) (out []results.Advice) {
	for _, r := range Rules {
		out = append(out, r.by(parts))
	}
	return out
}

func (r Rule) by(parts []results.Results) results.Advice {
	a := results.Advice{Question: r.Question, Source: r.Source}
	var verdicts []results.Verdict
	var instead, open []string
	for _, b := range r.Rests {
		c, ok := find(parts, b.Claim)
		if !ok {
			open = append(open, b.Claim)
			continue
		}
		answer, _ := c.Deciding()
		a.Cites = append(a.Cites, results.Cite{Claim: b.Claim, Verdict: string(c.Verdict), Figure: answer.Figure()})
		if verdicts = append(verdicts, c.Verdict); c.Verdict == results.Fails {
			instead = append(instead, b.Otherwise)
		}
	}
	who := "The advice is: "
	if r.Source != "" {
		who = "The source advises: "
	}
	switch verdict := judge.All(verdicts...); {
	case verdict == results.Fails:
		a.Verdict, a.Text = Contradicted, who+r.Says+" That did not hold here. "+strings.Join(instead, " ")
	case len(open) > 0:
		a.Verdict, a.Text = NotJudged, who+r.Says+" Not all that it rests on was judged here: "+strings.Join(open, ", ")+"."
	case verdict == results.Holds:
		a.Verdict, a.Text = Supported, r.Says
	default:
		a.Verdict, a.Text = Undecided, who+r.Says+" This machine did not decide it."
	}
	return a
}

// find is a claim, or its part, that was judged on a figure.
func find(parts []results.Results, id string) (results.Claim, bool) {
	for _, p := range parts {
		for _, c := range p.Claims {
			part, isPart := strings.CutPrefix(id, c.ID+"/")
			switch {
			case isPart:
				c = c.Part(part)
			case c.ID != id:
				continue
			}
			return c, slices.ContainsFunc(c.Answers, func(a results.Answer) bool { return !a.Beside && !a.Missing })
		}
	}
	return results.Claim{}, false
}
