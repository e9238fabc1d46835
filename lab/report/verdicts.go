package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/chart"
	"github.com/spillway-go/spillway/load/judge"
)

// looks are how a verdict is shown, with its words for one claim and for several.
type looks struct {
	verdict                         results.Verdict
	Class, Mark, code, one, several string
}

// verdicts from best to worst; the last is an unknown one.
var verdicts = []looks{
	{results.Holds, "holds", "✓", green, "holds", "hold"},
	{results.Fails, "fails", "✗", red, "fails", "fail"},
	{results.Inconclusive, "inconclusive", "~", yellow, "inconclusive", "inconclusive"},
	{results.NeedsHardware, "hardware", "▢", purple, "needs other hardware", "need other hardware"},
	{"", "hardware", "?", plain, "not judged", "not judged"},
}

func kind(v results.Verdict) looks {
	return verdicts[slices.IndexFunc(verdicts, func(k looks) bool { return k.verdict == v || k.verdict == "" })]
}

// chapter is claims that are shown together: the published ones, or goals of our own.
type chapter struct {
	ID, Title, Lead string
	Cards           []card
}

// tally is how often a verdict was given.
type tally struct {
	Verdict results.Verdict
	N       int
	Words   string // "hold"
}

// card is one claim.
type card struct {
	results.Claim
	Parts []part
}

// part is the answers that share a rule: one for each set-up.
type part struct {
	Title   string // empty: the claim's
	Rule    string
	Answers []answer
}

type answer struct {
	results.Answer
	Chart *chart.Interval // nil: there is no figure
}

// Chapters returns the claims. There is at least the chapter of published ones.
func (s *session) Chapters() []chapter {
	all := []chapter{
		{ID: "verdicts", Title: "Verdicts", Lead: "Published claims. One holds when the whole interval lies inside its rule, and the figure is clear of the edge by more than noise. The figure is ours; the published one is shown with it."},
		{ID: "goals", Title: "Goals of our own", Lead: "Nobody published these: they are what Spillway sets out to reach, and may miss, judged in the same way."},
	}
	for _, c := range s.Results.Claims {
		ch := &all[0]
		if c.Goal {
			ch = &all[1]
		}
		ch.Cards = append(ch.Cards, cardOf(c))
	}
	return slices.DeleteFunc(all, func(ch chapter) bool { return len(ch.Cards) == 0 && (ch.ID == "goals" || len(s.Results.Claims) > 0) })
}

// cardOf puts the answers of a claim that share a rule together and draws them.
func cardOf(c results.Claim) card {
	k := card{Claim: c}
	for _, a := range c.Answers {
		p := part{Rule: ruleWords(a)}
		if a.Title != "" && a.Title != c.Title {
			p.Title = strings.TrimPrefix(a.Part+": "+a.Title, ": ")
		}
		if n := len(k.Parts); n == 0 || k.Parts[n-1].Title != p.Title || k.Parts[n-1].Rule != p.Rule {
			k.Parts = append(k.Parts, p)
		}
		last := &k.Parts[len(k.Parts)-1]
		last.Answers = append(last.Answers, answer{Answer: a})
	}
	for _, p := range k.Parts {
		p.draw()
	}
	return k
}

// Tally counts the verdicts.
func (ch chapter) Tally() (out []tally) {
	for _, v := range verdicts {
		n := 0
		for _, k := range ch.Cards {
			if kind(k.Verdict) == v {
				n++
			}
		}
		if n > 0 {
			out = append(out, tally{v.verdict, n, pick(n == 1, v.one, v.several)})
		}
	}
	return out
}

// Wrong says how many of the verdicts chance is expected to make wrong. Each part and set-up of a
// claim has a chance of its own.
func (ch chapter) Wrong() string {
	n := 0
	for _, k := range ch.Cards {
		for _, a := range k.Answers {
			if !a.Beside && (a.Verdict == results.Holds || a.Verdict == results.Fails) {
				n++
			}
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("Of %s that hold or fail, each set-up counted, chance makes %.1f wrong on average if all figures lie at the edges of their rules, and fewer otherwise.", count(n, "part"), 2*judge.Miss(0)*float64(n))
}

// Undecided is why the claim has its verdict if no answer beneath it says so.
func (k card) Undecided() string {
	_, said := k.Deciding()
	return pick(said, "", sentence(k.Why))
}

// ruleWords are the rule, and the published value of the figure that it speaks of.
func ruleWords(a results.Answer) string {
	p := a.Said()
	return a.Rule.Words(a.Unit) + pick(p != "", " · published "+p, "")
}

// measured reports whether there is a figure at all.
func (a answer) measured() bool { return a.Repeats > 0 && !math.IsNaN(a.Measured) }

// reach is the figure's interval; both ends the figure itself if there is none.
func (a answer) reach() (low, high float64) {
	if a.Low <= a.Measured && a.Measured <= a.High {
		return a.Low, a.High
	}
	return a.Measured, a.Measured
}

// Interval is the measured value, its interval and its repeats.
func (a answer) Interval() string {
	return cmp.Or(a.Figure(), "no figure") + ", " + count(a.Repeats, "repeat")
}

// Remarks are the short facts beside the figure.
func (a answer) Remarks() []string {
	return filled(
		pick(a.Floor > 0 && a.measured(), "margin ± "+pick(a.Unit == "x", percent(a.Floor), with(a.Floor, a.Unit)), ""),
		pick(a.Repeats >= judge.LeastFollow && a.Low < a.High, fmt.Sprintf("lag-1 correlation %.2f", a.Follow), ""),
		pick(a.AtEdge, "at the edge", ""),
		pick(a.Missing, "a figure is missing", ""),
		pick(a.MoreRuns > 0, count(a.MoreRuns, "more repeat")+pick(a.Few, " needed for a verdict", pick(a.MoreRuns == 1, " settles it", " settle it")), ""))
}

// Behind are the medians of the figures that the answer was made of.
func (a answer) Behind() string {
	if n := len(a.Sides); n == 0 || n == 1 && a.Sides[0].Median == a.Measured {
		return ""
	}
	var parts []string
	for _, x := range a.Sides {
		parts = append(parts, fmt.Sprintf("%s %s %s (%s, %s)", x.Pattern, x.Figure, number(x.Median), setupName(x.Setup), loadName(x.Load)))
	}
	return "Medians behind it: " + strings.Join(parts, ", ") + "."
}

// draw gives the answers their strips, over a common axis.
func (p part) draw() {
	var all []float64
	for _, a := range p.Answers {
		if a.measured() {
			low, high := a.reach()
			all = append(append(append(all, a.Measured, low, high, a.Rule.Low, a.Rule.Top), a.Published...), a.Values...)
		}
	}
	for i, a := range p.Answers {
		if a.measured() {
			p.Answers[i].Chart = a.interval(chart.Around(all...))
		}
	}
}

// interval draws the answer on that scale.
func (a answer) interval(on chart.Scale) *chart.Interval {
	low, high := a.reach()
	v := &chart.Interval{
		Title: fmt.Sprintf("%s: measured %s; %s", a.Setup, a.Interval(), ruleWords(a.Answer)), Class: kind(a.Verdict).Class, Measured: a.Measured,
		X:      chart.Axis{Scale: on, Format: func(x float64) string { return with(x, a.Unit) }},
		Figure: chart.Range{Low: low, High: high}, Repeats: a.Values,
		Bands: []chart.Range{{Low: a.Rule.Low, High: a.Rule.Top}},
	}
	if a.Rule.Outside {
		v.Bands = []chart.Range{{Low: math.Inf(-1), High: a.Rule.Low}, {Low: a.Rule.Top, High: math.Inf(1)}}
	}
	for _, edge := range slices.Compact([]float64{a.Rule.Low, a.Rule.Top}) { // around them nothing is decided
		r := chart.Range{Low: edge - a.Floor, High: edge + a.Floor}
		if a.Unit == "x" {
			r = chart.Range{Low: edge / (1 + a.Floor), High: edge * (1 + a.Floor)}
		}
		if a.Floor > 0 && !math.IsInf(edge, 0) {
			v.Margins = append(v.Margins, r)
		}
	}
	if len(a.Published) > 0 {
		v.Published = []chart.Range{{Low: slices.Min(a.Published), High: slices.Max(a.Published)}}
	}
	return v
}
