package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/judge"
	"github.com/spillway-go/spillway/lab/report/chart"
	"github.com/spillway-go/spillway/lab/results"
)

// looks are how a verdict is shown, with its words for one claim, for several, and for
// advice that rests on it.
type looks struct {
	verdict                                 results.Verdict
	class, mark, code, one, several, advice string
}

// verdicts from best to worst; the last is an unknown one.
var verdicts = []looks{
	{results.Holds, "holds", "✓", green, "holds", "hold", "Our measurement supports this."},
	{results.Fails, "fails", "✗", red, "fails", "fail", "Our measurement does not support this."},
	{results.Inconclusive, "inconclusive", "~", yellow, "inconclusive", "inconclusive", "Our measurement does not decide this."},
	{results.NeedsHardware, "hardware", "▢", purple, "needs other hardware", "need other hardware", "Our measurement does not decide this."},
	{"", "hardware", "?", plain, "not judged", "not judged", "It was not judged."},
}

func kind(v results.Verdict) looks {
	return verdicts[slices.IndexFunc(verdicts, func(k looks) bool { return k.verdict == v || k.verdict == "" })]
}

func class(v results.Verdict) string   { return kind(v).class }
func mark(v results.Verdict) string    { return kind(v).mark }
func support(v results.Verdict) string { return kind(v).advice }

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
	Chart template.HTML
}

// Chapters returns the claims. There is at least the chapter of published ones.
func (s *session) Chapters() []chapter {
	published := chapter{ID: "verdicts", Title: "Verdicts", Lead: "Published claims. One holds when the whole interval lies inside its rule, clear of the edge by the margin. The figure is ours; the published one is shown with it."}
	goals := chapter{ID: "goals", Title: "Goals of our own", Lead: "Nobody published these: they are what Spillway sets out to reach, and may miss, judged in the same way."}
	for _, c := range s.Results.Claims {
		if c.Goal {
			goals.add(c)
		} else {
			published.add(c)
		}
	}
	switch {
	case len(goals.Cards) == 0:
		return []chapter{published}
	case len(published.Cards) == 0:
		return []chapter{goals}
	}
	return []chapter{published, goals}
}

func (ch *chapter) add(c results.Claim) {
	k := card{Claim: c}
	for _, a := range c.Answers {
		p := part{Title: a.Part, Rule: ruleWords(a)}
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
	ch.Cards = append(ch.Cards, k)
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

// Undecided is why the claim has its verdict if no answer beneath it says so.
func (k card) Undecided() string {
	if slices.ContainsFunc(k.Answers, func(a results.Answer) bool { return !a.Beside }) {
		return ""
	}
	return sentence(k.Why)
}

// ruleWords are the rule, and the published value of the figure that it speaks of.
func ruleWords(a results.Answer) string {
	p := publishedWords(a)
	return a.Rule.Words(a.Unit) + pick(p != "", " · published "+p, "")
}

func publishedWords(a results.Answer) string {
	if len(a.Published) == 0 {
		return ""
	}
	return strings.TrimPrefix(judge.Between(slices.Min(a.Published), slices.Max(a.Published)).Words(a.Unit), "exactly ")
}

// measured reports whether there is a figure at all.
func measured(a results.Answer) bool { return a.Repeats > 0 && !math.IsNaN(a.Measured) }

func bounded(a results.Answer) bool { return a.Low <= a.Measured && a.Measured <= a.High }

// Interval is the measured value, its interval and its repeats.
func (a answer) Interval() string {
	repeats := count(a.Repeats, "repeat")
	switch {
	case !measured(a.Answer):
		return "no figure from " + repeats
	case !bounded(a.Answer) || number(a.Low) == number(a.High):
		return fmt.Sprintf("%s (%s)", with(a.Measured, a.Unit), repeats)
	}
	return fmt.Sprintf("%s (%s%s%s, %s)", with(a.Measured, a.Unit), number(a.Low), pick(a.Low < 0, " to ", " – "), number(a.High), repeats)
}

// Remarks are the short facts beside the figure.
func (a answer) Remarks() (out []string) {
	if a.Floor > 0 && measured(a.Answer) {
		out = append(out, "margin "+margin(a.Answer))
	}
	if a.AtEdge {
		out = append(out, "at the edge")
	}
	if a.Missing {
		out = append(out, "a figure is missing")
	}
	if a.MoreRuns > 0 {
		out = append(out, count(a.MoreRuns, "more repeat")+pick(a.MoreRuns == 1, " settles it", " settle it"))
	}
	return out
}

// Behind are the medians of the figures that the answer was made of. What they have in
// common is said once.
func (a answer) Behind() string {
	if n := len(a.Sides); n == 0 || n == 1 && a.Sides[0].Median == a.Measured {
		return ""
	}
	place := func(x results.Side) string { return fmt.Sprintf(" (%s, %s)", setupName(x.Setup), loadName(x.Load)) }
	last := place(a.Sides[len(a.Sides)-1])
	apart := slices.ContainsFunc(a.Sides, func(x results.Side) bool { return place(x) != last })
	var parts []string
	for i, x := range a.Sides {
		parts = append(parts, fmt.Sprintf("%s %s %s%s", x.Pattern, x.Figure, number(x.Median), pick(apart || i == len(a.Sides)-1, place(x), "")))
	}
	return "Medians behind it: " + strings.Join(parts, ", ") + "."
}

// draw gives the answers their charts, over a common axis. An answer without a figure has
// none, and a single dot shows nothing.
func (p part) draw() {
	charts := make([]*chart.Interval, len(p.Answers))
	var all []float64
	for i, a := range p.Answers {
		if !measured(a.Answer) {
			continue
		}
		v := &chart.Interval{
			Title: fmt.Sprintf("%s: measured %s", a.Setup, a.Interval()), Class: class(a.Verdict), Measured: a.Measured,
			Figure: chart.Range{Low: a.Measured, High: a.Measured, Tip: "measured " + a.Interval()},
		}
		if bounded(a.Answer) {
			v.Figure.Low, v.Figure.High = a.Low, a.High
		}
		v.Bands, v.Margins = bands(a.Answer), margins(a.Answer)
		if said := publishedWords(a.Answer); said != "" {
			v.Published = []chart.Range{{Low: slices.Min(a.Published), High: slices.Max(a.Published), Tip: "published: " + said}}
		}
		if len(v.Bands)+len(v.Published) > 0 || v.Figure.Low != v.Figure.High {
			charts[i], all = v, append(all, v.Cover()...)
		}
	}
	for i, v := range charts {
		if v != nil {
			v.X = chart.Axis{Scale: chart.Around(all...), Format: func(x float64) string { return with(x, p.Answers[i].Unit) }}
			p.Answers[i].Chart = template.HTML(v.SVG())
		}
	}
}

// bands are where the claim holds.
func bands(a results.Answer) []chart.Range {
	tip := "rule: " + a.Rule.Words(a.Unit)
	if a.Rule.Outside {
		return []chart.Range{{Low: math.Inf(-1), High: a.Rule.Low, Tip: tip}, {Low: a.Rule.Top, High: math.Inf(1), Tip: tip}}
	}
	return []chart.Range{{Low: a.Rule.Low, High: a.Rule.Top, Tip: tip}}
}

// margins are around the rule's edges, where nothing is decided.
func margins(a results.Answer) (out []chart.Range) {
	for _, edge := range slices.Compact([]float64{a.Rule.Low, a.Rule.Top}) {
		if math.IsInf(edge, 0) || !(a.Floor > 0) {
			continue
		}
		r := chart.Range{Low: edge - a.Floor, High: edge + a.Floor, Tip: "margin: within " + margin(a) + " of the edge nothing is decided"}
		if a.Unit == "x" {
			r.Low, r.High = edge/(1+a.Floor), edge*(1+a.Floor)
		}
		out = append(out, r)
	}
	return out
}
