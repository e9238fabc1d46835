// Package ledger says what a claim is and decides it from the raw runs of a session.
//
// A [Claim] is a row of data: its parts, for each part the rule and the published
// figures, and for each set-up a [Term], which says how the figures of the cells
// become one value for each repeat. There is no code that judges one claim; the words
// of a verdict are made from the row. A [Family] is the claims of one experiment with
// what a report needs to know about it.
//
// A figure that a run does not have is missing, and the verdict names it. It is never
// taken for 0.
package ledger

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
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

	// Exact means that the figure is a count without noise: repeats that are all alike are no chance.
	Exact bool

	// Beside means that the part decides nothing: by construction it can come out only one way, or
	// nobody claimed its figure. Its title says which.
	Beside bool

	// Cases returns the set-ups, which may depend on what was run.
	Cases func(*Evidence) []Case
}

// cases are the set-ups of the part. Those of a part that decides nothing decide nothing.
func (p Part) cases(e *Evidence) []Case {
	out := p.Cases(e)
	if p.Beside {
		out = slices.Clone(out)
		for i := range out {
			out[i].Beside = true
		}
	}
	return out
}

// Case is a part in one set-up.
type Case struct {
	Setup  string
	Value  Term
	Beside bool   // shown for comparison; it decides nothing
	Needs  string // the hardware that the rule speaks of and that is missing, as a sentence
	Open   string // why it is not judged as it was run, and what to do, as a sentence
	Remark string // a fact that belongs beside the verdict, as a sentence

	Max float64 // the most that the figure can be in this set-up; 0: as of the part
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
		if out[i] = c.judge(e); !c.Goal {
			out[i].Source = f.Source
		}
	}
	return out
}

func (c Claim) judge(e *Evidence) results.Claim {
	out := results.Claim{ID: c.ID, Title: c.Title, Goal: c.Goal, Any: c.Any, Published: c.Published, Note: c.Note}
	for _, p := range c.Parts {
		for _, k := range p.cases(e) {
			if k.Beside && !e.ranAny(k.Value) {
				continue
			}
			a := p.judge(e, k)
			a.Title = cmp.Or(a.Title, c.Title)
			out.Answers = append(out.Answers, a)
		}
	}
	c.decide(&out, c.tests(e), e.Looks)
	return out
}

// unit is what may decide a claim alone: a set-up of a part by failing, or, with Any, a whole part by
// holding.
type unit struct {
	verdict results.Verdict
	chance  float64 // as of judge.Answer
}

func (c Claim) units(of results.Claim) (out []unit) {
	for _, p := range c.Parts {
		if p.Beside {
			continue
		}
		var setups []unit
		var whole unit
		var verdicts []results.Verdict
		for _, a := range of.Answers {
			if a.Part == p.ID && !a.Beside {
				setups, verdicts = append(setups, unit{a.Verdict, a.Chance}), append(verdicts, a.Verdict)
				whole.chance = max(whole.chance, a.Chance)
			}
		}
		if whole.verdict = judge.All(verdicts...); c.Any || len(setups) == 0 {
			setups = []unit{whole}
		}
		out = append(out, setups...)
	}
	return out
}

// tests is the number of units that may decide the claim alone on this machine. The number does not
// depend on what was measured.
func (c Claim) tests(e *Evidence) (n int) {
	for _, p := range c.Parts {
		setups := 0
		for _, k := range p.cases(e) {
			if !k.Beside && k.Needs == "" {
				setups++
			}
		}
		if c.Any {
			setups = min(setups, 1)
		}
		n += setups
	}
	return n
}

// decide makes the verdict of the claim of so many tests. Where one of many units decides alone,
// chance finds such a unit more often than a single one. So the verdict needs a unit that stands by
// Holm's correction for their number. Without one, the claim is open.
func (c Claim) decide(out *results.Claim, tests, looks int) {
	combine, alone := judge.All, results.Fails
	if c.Any {
		combine, alone = judge.Any, results.Holds
	}
	var verdicts []results.Verdict
	var chances []float64
	for _, u := range c.units(*out) {
		verdicts = append(verdicts, u.verdict)
		if u.verdict == alone {
			chances = append(chances, u.chance)
		}
	}
	out.Verdict = combine(verdicts...)
	out.Why = reason(*out)
	if out.Verdict != alone || slices.Contains(judge.Holm(chances, tests, judge.Miss(looks)), true) {
		return
	}
	least, of := slices.Min(chances), float64(tests)
	out.Verdict = results.Inconclusive
	out.MoreRuns = max(1, int(math.Ceil(math.Log2(least*of/judge.Miss(looks+1))-1e-9))) // a repeat halves the chance at best
	out.Why += fmt.Sprintf(" Among %v parts and set-ups, chance alone makes one look like that in up to %.0f %% of sessions. %s should settle it.",
		of, 100*min(1, least*of), plural(out.MoreRuns, "more repeat"))
}

// Repeats is how many repeats the claim needs before the first verdict: as many as its kind of figures
// takes, and enough for one part to decide alone in spite of the correction for their number. Exact
// counts need no correction.
func (c Claim) Repeats(e *Evidence) int {
	if !slices.ContainsFunc(c.Parts, func(p Part) bool { return !p.Exact && !p.Beside }) {
		return judge.MinRepeats
	}
	n := judge.MinRepeats + int(math.Ceil(math.Log2(float64(max(1, c.tests(e))))))
	if c.Interval(e) {
		n = max(n, judge.LeastFollow)
	}
	return n
}

// Interval reports whether the verdict rests on the interval of a median that has noise. Exact counts,
// which have no twin and do not differ between sessions, have none.
func (c Claim) Interval(e *Evidence) bool {
	noisy := func(k Case) bool {
		return !k.Beside && k.Needs == "" && slices.ContainsFunc(k.Value.Keys(), func(key Key) bool { return e.Has(key.twin()) })
	}
	return slices.ContainsFunc(c.Parts, func(p Part) bool {
		return !p.Beside && p.Kind == judge.Median && (p.Spread > 0 || slices.ContainsFunc(p.cases(e), noisy))
	})
}

// Undecidable reports whether the claim cannot hold whatever is measured of the cells in e: a case is open
// for want of something, such as a server.
func (c Claim) Undecidable(e *Evidence) bool {
	return !c.Any && slices.ContainsFunc(c.Parts, func(p Part) bool {
		return slices.ContainsFunc(p.cases(e), func(k Case) bool { return !k.Beside && k.Open != "" })
	})
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Keys returns the cells that decide the claim, and their twins, as far as they were run.
func (c Claim) Keys(e *Evidence) []Key {
	return c.keys(e, func(Part, Case) bool { return true })
}

// KeysOf returns those of Keys on which the answer rests.
func (c Claim) KeysOf(e *Evidence, a results.Answer) []Key {
	return c.keys(e, func(p Part, k Case) bool { return p.ID == a.Part && k.Setup == a.Setup })
}

func (c Claim) keys(e *Evidence, wanted func(Part, Case) bool) (out []Key) {
	for _, p := range c.Parts {
		for _, k := range p.cases(e) {
			if k.Beside || !wanted(p, k) {
				continue
			}
			for _, l := range k.Value.readings(nil) {
				for _, key := range l.key.AndTwin(true) {
					if e.Has(key) && !slices.Contains(out, key) {
						out = append(out, key)
					}
				}
			}
		}
	}
	return out
}

func (p Part) judge(e *Evidence, k Case) results.Answer {
	q := judge.Question{Subject: p.Subject, Unit: p.Unit, Kind: p.Kind, Ratio: p.Unit == "x", Rule: p.Rule, Spread: p.Spread, Min: p.Min, Max: cmp.Or(k.Max, p.Max)}
	in := judge.Input{Values: e.perRepeat(k.Value), Looks: e.Looks, Disturbed: e.disturbed(k.Value), Missing: e.missing(k.Value), Seed: e.Seed}
	if p.Kind == judge.Median {
		in.Floor = e.floor(k.Value, q.Ratio)
	}
	ans := judge.Judge(q, in)
	out := results.Answer{
		Part: p.ID, Title: p.Title, Setup: k.Setup, Beside: k.Beside, Verdict: ans.Verdict,
		Measured: ans.Measured, Low: ans.Low, High: ans.High, Unit: p.Unit, Rule: p.Rule, Published: p.Published,
		Values:  known(in.Values),
		Repeats: ans.Repeats, Floor: ans.Floor, Follow: ans.Follow, Chance: ans.Chance, MoreRuns: ans.MoreRuns, Few: ans.Few, AtEdge: ans.AtEdge, Missing: math.IsNaN(ans.Measured), Why: ans.Why,
		Sides: e.sides(k.Value),
	}
	if p.Exact && out.Low == out.High {
		out.Chance = 0
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
	return out
}

// known are the values that are there.
func known(values []float64) (out []float64) {
	for _, x := range values {
		if finite(x) {
			out = append(out, x)
		}
	}
	return out
}

// floor is by how much the term differs from itself when the cells that have a twin are
// replaced by it, in each repeat in which one of them was run; NaN where that failed.
func (e *Evidence) floor(t Term, ratio bool) (out []float64) {
	readings := t.readings(e)
	for _, repeat := range e.complete(t) {
		if !slices.ContainsFunc(readings, func(l reading) bool { return e.ran(l.key.twin(), repeat) }) {
			continue
		}
		own, twins := Median(t.at(e, repeat, false)), Median(t.at(e, repeat, true))
		off := twins - own
		if ratio {
			off = math.Log(twins / own)
		}
		out = append(out, off)
	}
	return out
}

// sides are the medians of the figures that the value is made of.
func (e *Evidence) sides(t Term) (out []results.Side) {
	for _, l := range t.readings(e) {
		if m := Median(e.perRepeat(Of(l.key, l.figure))); finite(m) {
			out = append(out, results.Side{Setup: l.key.Setup, Load: l.key.Load, Pattern: l.key.Pattern, Figure: l.figure.Name, Median: m})
		}
	}
	if len(out) > 6 { // too many to tell anything
		return nil
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
	for _, a := range deciding[1:] {
		names = append(names, strings.TrimPrefix(a.Part+" ("+a.Setup+")", " "))
	}
	first := deciding[0].Why
	return fmt.Sprintf("%s%s and likewise in %s.", strings.ToUpper(first[:1]), strings.TrimSuffix(first[1:], "."), strings.Join(names, ", "))
}
