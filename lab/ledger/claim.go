package ledger

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/judge"
	"github.com/spillway-go/spillway/lab/results"
)

// Claim is one row: a published claim, or a goal of ours.
type Claim struct {
	ID        string
	Title     string // the claim, as a plain sentence without its full stop
	Goal      bool   // ours to reach; nobody published it
	Any       bool   // one part is enough; otherwise all have to hold
	Published string // the published figures, in the source's words or units
	Note      string // about the published method
	Parts     []Part
}

// Part is what one rule decides.
type Part struct {
	ID      string // beneath the claim's: "refused"; empty if the claim has one part
	Title   string // what the part says; empty: the claim's
	Subject string // of the sentence about it: "naive/workerpool goodput"
	Unit    string // "x" for a ratio, "%", "req/s", …
	Kind    judge.Kind
	Rule    judge.Rule

	// Published is the published value of the figure, or the ends of its range.
	Published []float64

	Spread   float64 // by how much the figure moves between two sessions; of a ratio, a share
	Min, Max float64 // what the figure can be at all, if Min < Max

	// Cases returns the set-ups, which may depend on what was run.
	Cases func(*Evidence) []Case
}

// Case is a part in one set-up.
type Case struct {
	Setup  string
	Value  Term
	Beside bool   // shown for comparison; it decides nothing
	Needs  string // the hardware that the rule speaks of and that is missing, as a sentence
	Open   string // why it is not judged as it was run, and what to do, as a sentence
	Remark string // a fact that belongs beside the verdict, as a sentence
}

// Only is the cases of a part that has always the same.
func Only(cases ...Case) func(*Evidence) []Case {
	return func(*Evidence) []Case { return cases }
}

// Judge decides every claim of the family. The same runs and seed give the same
// verdicts.
func (f *Family) Judge(e *Evidence) []results.Claim {
	out := make([]results.Claim, len(f.Claims))
	for i, c := range f.Claims {
		out[i] = c.judge(e)
		out[i].Source = f.Source
		if c.Goal {
			out[i].Source = ""
		}
	}
	return out
}

func (c Claim) judge(e *Evidence) results.Claim {
	out := results.Claim{ID: c.ID, Title: c.Title, Goal: c.Goal, Any: c.Any, Published: c.Published, Note: c.Note}
	var verdicts []results.Verdict
	for _, p := range c.Parts {
		var deciding []results.Verdict
		for _, k := range p.Cases(e) {
			a := p.judge(e, k)
			a.Title = cmp.Or(a.Title, c.Title)
			out.Answers = append(out.Answers, a)
			if !a.Beside {
				deciding = append(deciding, a.Verdict)
			}
		}
		verdicts = append(verdicts, judge.All(deciding...))
	}
	if c.Any {
		out.Verdict = judge.Any(verdicts...)
	} else {
		out.Verdict = judge.All(verdicts...)
	}
	out.Why = reason(out)
	return out
}

func (p Part) judge(e *Evidence, k Case) results.Answer {
	q := judge.Question{Subject: p.Subject, Unit: p.Unit, Kind: p.Kind, Ratio: p.Unit == "x", Rule: p.Rule, Spread: p.Spread, Min: p.Min, Max: p.Max}
	in := judge.Input{Looks: e.Looks, Seed: e.Seed, Missing: e.missing(k.Value)}
	in.Values, in.Disturbed = e.perRepeat(k.Value, false), e.disturbed(k.Value)
	if p.Kind == judge.Median {
		in.Floor = e.floor(k.Value, q.Ratio)
	}
	ans := judge.Judge(q, in)
	out := results.Answer{
		Part: p.ID, Title: p.Title, Setup: k.Setup, Beside: k.Beside, Verdict: ans.Verdict,
		Measured: ans.Measured, Low: ans.Low, High: ans.High, Unit: p.Unit, Rule: p.Rule, Published: p.Published,
		Repeats: ans.Repeats, Floor: ans.Floor, MoreRuns: ans.MoreRuns, AtEdge: ans.AtEdge, Missing: math.IsNaN(ans.Measured), Why: ans.Why,
	}
	switch {
	case k.Needs != "":
		out.Verdict, out.MoreRuns, out.Why = results.NeedsHardware, 0, k.Needs+" Here "+ans.Why
	case k.Open != "":
		out.Verdict, out.MoreRuns, out.Why = results.Inconclusive, 0, k.Open
	}
	if k.Remark != "" {
		out.Why += " " + k.Remark
	}
	out.Sides = e.sides(k.Value)
	return out
}

// floor is by how much the term differs from itself when the cells that have a twin are
// replaced by it, in each repeat in which one of them was run.
func (e *Evidence) floor(t Term, ratio bool) (out []float64) {
	leaves := t.leaves(e)
	for _, repeat := range e.complete(t) {
		if !slices.ContainsFunc(leaves, func(l Term) bool { k := l.key; k.Twin = true; return e.ran(k, repeat) }) {
			continue
		}
		own, twins := Median(t.at(e, repeat, false)), Median(t.at(e, repeat, true))
		if ratio {
			out = append(out, math.Log(twins/own))
		} else {
			out = append(out, twins-own)
		}
	}
	return out
}

const mostSides = 6

// sides are the medians of the figures that the value is made of.
func (e *Evidence) sides(t Term) []results.Side {
	var out []results.Side
	for _, l := range t.leaves(e) {
		if m := Median(e.perRepeat(l, false)); !math.IsNaN(m) && !math.IsInf(m, 0) {
			out = append(out, results.Side{Setup: l.key.Setup, Load: l.key.Load, Pattern: l.key.Pattern, Figure: l.figure.Name, Median: m})
		}
	}
	if len(out) > mostSides {
		return nil // too many to tell anything
	}
	return out
}

// reason says which of the answers made the claim's verdict.
func reason(c results.Claim) string {
	var deciding []results.Answer
	for _, a := range c.Answers {
		if !a.Beside && (a.Verdict == c.Verdict || len(c.Answers) == 1) {
			deciding = append(deciding, a)
		}
	}
	switch len(deciding) {
	case 0:
		return "It was not measured here."
	case 1:
		return deciding[0].Why
	}
	var names []string
	for _, a := range deciding {
		names = append(names, strings.TrimPrefix(a.Part+" ("+a.Setup+")", " "))
	}
	return fmt.Sprintf("%s %s in %s.", strings.ToUpper(deciding[0].Why[:1])+strings.TrimSuffix(deciding[0].Why[1:], "."), "and likewise", strings.Join(names[1:], ", "))
}
