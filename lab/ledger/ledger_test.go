package ledger

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

var speed = Extra("speed", "speed")

func cell(pattern string) Key { return Key{Setup: "s", Load: "l", Pattern: pattern} }

func run(pattern string, repeat int, x float64) results.Run {
	return results.Run{Setup: "s", Load: "l", Pattern: pattern, Repeat: repeat, Elapsed: 1, Extra: map[string]float64{"speed": x}}
}

// family is one claim: a is at least twice b.
func family(rule judge.Rule) Family {
	return Family{ID: "T", Source: "an article", Claims: []Claim{{
		ID: "T1", Title: "a is faster than b", Published: "2.4x",
		Parts: []Part{{
			Subject: "a/b", Unit: "x", Rule: rule, Spread: 0.03,
			Cases: Only(Case{Setup: "as published", Value: Of(cell("a"), speed).Over(Of(cell("b"), speed))}),
		}},
	}}}
}

func session(a, b float64) (runs []results.Run) { return repeats(judge.LeastFollow, a, b) }

func repeats(n int, a, b float64) (runs []results.Run) {
	for repeat := range n {
		off := 1 + 0.001*float64(repeat*3%5)
		twin := run("a", repeat, a*off*1.001)
		twin.Twin = true
		runs = append(runs, run("a", repeat, a*off), run("b", repeat, b), twin)
	}
	return runs
}

func TestAClaimIsDecidedByItsRow(t *testing.T) {
	f := family(judge.AtLeast(2))
	for a, want := range map[float64]results.Verdict{3: results.Holds, 1: results.Fails, 2.01: results.Inconclusive} {
		got := f.Judge(NewEvidence(session(a, 1), 1))[0]
		if got.Verdict != want || got.Source != "an article" || len(got.Answers) != 1 || got.Why == "" {
			t.Errorf("a/b = %v: %+v", a, got)
		}
	}
	got := f.Judge(NewEvidence(session(2.01, 1), 1))[0].Answers[0]
	if !got.AtEdge || got.Missing || got.Repeats != judge.LeastFollow || len(got.Sides) != 2 || got.Sides[0].Figure != "speed" {
		t.Errorf("at the edge: %+v", got)
	}
}

func TestEveryRepeatIsPairedAndBlocksAreToo(t *testing.T) {
	a, b := run("a", 0, 1), run("b", 0, 1)
	a.Blocks = map[string][]float64{"speed": {10, 2, 30}}
	b.Blocks = map[string][]float64{"speed": {5, 1, 15}}
	a1, b1 := run("a", 1, 6), run("b", 1, 2)
	e := NewEvidence([]results.Run{b1, a, b, a1, run("a", 2, 9)}, 1)
	ratio := Of(cell("a"), speed).Over(Of(cell("b"), speed))
	if got := e.perRepeat(ratio); fmt.Sprint(got) != "[2 3]" {
		t.Errorf("ratios %v: want the median of the blocks' ratios, then the other repeat", got)
	}
	for want, term := range map[float64]Term{
		4: Of(cell("a"), speed).Minus(Of(cell("b"), speed)), 8: Of(cell("a"), speed).Plus(Of(cell("b"), speed)), 12: Of(cell("a"), speed).Times(2),
		6: Largest(Of(cell("a"), speed), Of(cell("b"), speed)), 2: Smallest(Of(cell("a"), speed), Of(cell("b"), speed)),
	} {
		if got := Median(term.at(e, 1, false)); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

func TestTheBestOfTheSessionIsNotThatOfOneRepeat(t *testing.T) {
	var runs []results.Run
	for repeat, x := range []float64{1, 9, 1, 1, 1, 1} {
		runs = append(runs, run("a", repeat, x), run("b", repeat, 2))
	}
	e := NewEvidence(runs, 1)
	terms := []Term{Of(cell("a"), speed), Of(cell("b"), speed)}
	if got := e.perRepeat(Best(terms...)); fmt.Sprint(got) != "[2 2 2 2 2 2]" {
		t.Errorf("best %v", got)
	}
	if got := e.perRepeat(Least(terms...)); fmt.Sprint(got) != "[1 9 1 1 1 1]" {
		t.Errorf("least %v", got)
	}
}

// Of 28 equal sizes one is the luckiest. Judged by the repeats that chose it, it was 10 % better than the
// others, and a rule that was as good as any failed in nine of ten sessions.
func TestTheLuckiestOfManyIsNoBetter(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	const sessions = 40
	sum := 0.
	for range sessions {
		var runs []results.Run
		var terms []Term
		for n := range 28 {
			name := fmt.Sprint(n)
			terms = append(terms, Of(cell(name), speed))
			for repeat := range 10 {
				runs = append(runs, run(name, repeat, 100*math.Exp(.15*random.NormFloat64())))
			}
		}
		sum += Median(NewEvidence(runs, 1).perRepeat(terms[0].Over(Best(terms...))))
	}
	if mean := sum / sessions; math.Abs(mean-1) > .04 {
		t.Errorf("any of 28 equal sizes reaches %.3f of the best", mean)
	}
}

// A hopeless contestant that failed in one repeat once left a claim about the best of several open.
func TestTheBestDoesNotNeedWhatIsClearlyWorse(t *testing.T) {
	for name, c := range map[string]struct {
		of   []float64 // of b, whose second repeat fails; a has 5
		want string
	}{
		"worse":     {[]float64{1, 0, 4}, "[5 5 5]"},
		"as good":   {[]float64{1, 0, 5}, "[1 NaN 5]"},
		"not known": {nil, "[NaN NaN NaN]"},
	} {
		var runs []results.Run
		for repeat := range 3 {
			b := run("b", repeat, 0)
			if b.Failed = "late"; c.of != nil && repeat != 1 {
				b = run("b", repeat, c.of[repeat])
			}
			runs = append(runs, run("a", repeat, 5), b)
		}
		e := NewEvidence(runs, 1)
		best := Best(Of(cell("b"), speed), Of(cell("a"), speed))
		if got := fmt.Sprint(e.perRepeat(best)); got != c.want {
			t.Errorf("%s: the best is %s, want %s", name, got, c.want)
		}
		if missing := e.missing(best); (missing == "") != (name == "worse") {
			t.Errorf("%s: missing: %q", name, missing)
		}
	}
}

func TestWhatIsMissingIsNamedAndNeverZero(t *testing.T) {
	f := family(judge.AtMost(2))
	without := session(1, 1)
	delete(without[3].Extra, "speed")
	infinite := session(1, 1)
	infinite[3].Extra["speed"] = math.Inf(1)
	killed := session(1, 1)
	killed[3].Killed = "killed above the memory cap."
	failed := session(1, 1)
	for i := range failed {
		if failed[i].Pattern == "b" {
			failed[i].Failed = "no route\n\ngoroutine 1"
		}
	}
	for want, runs := range map[string][]results.Run{
		"speed of s · l · a is missing in repeat 2":  without,
		"speed of s · l · a is missing in repeat 2.": infinite,
		"it was killed above the memory cap.":        killed,
		"s · l · b could not be measured: no route.": failed,
		"s · l · a was not run.":                     nil,
	} {
		got := f.Judge(NewEvidence(runs, 1))[0]
		if got.Verdict != results.Inconclusive || !strings.Contains(got.Why, want) {
			t.Errorf("%s: %q, want %q", got.Verdict, got.Why, want)
		}
	}
	cut := session(1, 1)
	if got := f.Judge(NewEvidence(append(cut, run("a", judge.LeastFollow, 1)), 1))[0]; got.Verdict != results.Holds {
		t.Errorf("a repeat that was cut short: %s, %s", got.Verdict, got.Why)
	}
}

// Six parts at the edges of their rules once made 13 to 17 % of claims fail.
func TestAmongManyPartsOneThatFailsNeedsMoreRepeats(t *testing.T) {
	f := family(judge.AtLeast(2))
	c := &f.Claims[0]
	ratio := Of(cell("a"), speed).Over(Of(cell("b"), speed))
	for i := range 5 {
		c.Parts = append(c.Parts, Part{ID: fmt.Sprint(i), Subject: "a", Rule: judge.AtLeast(1), Cases: One("so", ratio)})
	}
	if n := c.Repeats(NewEvidence(repeats(5, 1.5, 1), 1)); n != 8 {
		t.Errorf("it needs %d repeats", n)
	}
	for n, want := range map[int]results.Verdict{7: results.Inconclusive, 8: results.Fails} {
		got := f.Judge(NewEvidence(repeats(n, 1.5, 1), 1))[0]
		if got.Verdict != want || got.Answers[0].Verdict != results.Fails || (got.MoreRuns > 0) != (want == results.Inconclusive) {
			t.Errorf("%d repeats: it %s, %d more, %s", n, got.Verdict, got.MoreRuns, got.Why)
		}
	}
	if got := f.Judge(NewEvidence(repeats(7, 1.5, 1), 1))[0]; got.MoreRuns != 2 || !strings.Contains(got.Why, "Among 6 parts and set-ups, chance alone makes one look like that in up to 5 % of sessions. 2 more repeats should settle it.") {
		t.Errorf("%d more: %s", got.MoreRuns, got.Why)
	}
	later := NewEvidence(repeats(9, 1.5, 1), 1)
	later.Looks = 1
	if got := f.Judge(later)[0]; got.Verdict != results.Fails {
		t.Errorf("with as many more it is %s: %s", got.Verdict, got.Why)
	}
	for i := range 3 { // however the runs came out, the number of tests is the same
		c.Parts[i].Cases = Only(Case{Setup: "so", Value: ratio, Open: "Too little was offered."})
	}
	if n := c.Repeats(NewEvidence(repeats(5, 1.5, 1), 1)); n != 8 {
		t.Errorf("with parts that stay open it needs %d repeats", n)
	}
	for i := range 3 {
		c.Parts[i].Cases = One("so", ratio)
	}
	c.Parts[0].Rule = judge.AtLeast(1)
	if got := f.Judge(NewEvidence(repeats(7, 1.5, 1), 1))[0]; got.Verdict != results.Holds {
		t.Errorf("all parts hold, and the claim is %s", got.Verdict)
	}
	c.Parts[0].Rule = judge.AtLeast(2)
	if c.Any = true; f.Judge(NewEvidence(repeats(7, 1.5, 1), 1))[0].Verdict != results.Inconclusive {
		t.Error("of six parts any may hold, and with seven repeats the claim is decided")
	}
}

// A server that made 19 objects for each request in all repeats was open for the five other set-ups.
func TestExactCountsThatAreAllAlikePayForNoChance(t *testing.T) {
	f := family(judge.AtLeast(2))
	c := &f.Claims[0]
	c.Parts = nil
	objects := Figure{Name: "objects", Value: func(r *results.Run) float64 { return math.Round(r.Extra[speed.Key]) }}
	for i := range 6 {
		c.Parts = append(c.Parts, Part{ID: fmt.Sprint(i), Subject: "a", Kind: judge.Every, Exact: true, Rule: judge.AtLeast(2), Cases: One("so", Of(cell("a"), objects))})
	}
	alike := repeats(5, 1.2, 1)
	if n := c.Repeats(NewEvidence(alike, 1)); n != judge.MinRepeats {
		t.Errorf("it needs %d repeats", n)
	}
	if got := f.Judge(NewEvidence(alike, 1))[0]; got.Verdict != results.Fails {
		t.Errorf("five repeats alike: it %s, %s", got.Verdict, got.Why)
	}
	for i := range c.Parts {
		c.Parts[i].Exact = false
	}
	if got := f.Judge(NewEvidence(alike, 1))[0]; got.Verdict != results.Inconclusive {
		t.Errorf("figures with noise: it %s", got.Verdict)
	}
}

func TestTheFirstVerdictTakesAsManyRepeatsAsItsFigures(t *testing.T) {
	e := NewEvidence(repeats(1, 1, 1), 1) // of a, a's twin and b
	of := func(c string) func(*Evidence) []Case { return One("so", Of(cell(c), speed)) }
	for _, c := range []struct {
		name  string
		parts []Part
		want  int
	}{
		{"a median of what has a twin", []Part{{Cases: of("a")}}, judge.LeastFollow},
		{"a median that sessions move", []Part{{Spread: .1, Cases: of("b")}}, judge.LeastFollow},
		{"an exact count", []Part{{Cases: of("b")}}, judge.MinRepeats},
		{"every repeat", []Part{{Kind: judge.Every, Spread: .1, Cases: of("a")}}, judge.MinRepeats},
		{"an invariant", []Part{{Kind: judge.Never, Cases: of("a")}}, judge.MinRepeats},
		{"an exact count beside a median that decides nothing", []Part{{Cases: of("b")}, {Beside: true, Spread: .1, Cases: of("b")}}, judge.MinRepeats},
		{"an exact count and a median", []Part{{Cases: of("b")}, {Cases: of("a")}}, judge.LeastFollow},
	} {
		if got := (Claim{Parts: c.parts}).Repeats(e); got != c.want {
			t.Errorf("%s: %d repeats, want %d", c.name, got, c.want)
		}
	}
}

func TestPartsSetupsAndWhatStandsBeside(t *testing.T) {
	f := family(judge.AtLeast(2))
	c := &f.Claims[0]
	ratio := Of(cell("a"), speed).Over(Of(cell("b"), speed))
	c.Parts = append(c.Parts, Part{ID: "small", Subject: "b", Rule: judge.AtMost(5), Cases: Only(
		Case{Setup: "ours", Value: Of(cell("a"), speed), Beside: true}, Case{Setup: "as published", Value: Of(cell("b"), speed)})})
	e := NewEvidence(repeats(judge.LeastFollow+1, 30, 1), 1)
	if got := f.Judge(e)[0]; got.Verdict != results.Holds || len(got.Answers) != 3 || got.Answers[1].Verdict != results.Fails {
		t.Errorf("what stands beside decided: %+v", got)
	}
	c.Parts[1].Cases = Only(Case{Setup: "as published", Value: ratio})
	if got := f.Judge(e)[0]; got.Verdict != results.Fails {
		t.Errorf("one part fails: %s", got.Verdict)
	}
	if c.Any = true; f.Judge(e)[0].Verdict != results.Holds {
		t.Error("one part is enough")
	}
	c.Parts = c.Parts[:1]
	c.Parts[0].Cases = Only(Case{Setup: "as published", Value: ratio, Needs: "It takes 16 cores."})
	if got := f.Judge(e)[0]; got.Verdict != results.NeedsHardware || !strings.Contains(got.Why, "16 cores") {
		t.Errorf("%+v", got)
	}
	c.Parts[0].Cases = Only(Case{Setup: "as published", Value: ratio, Open: "It is too short: use --full."})
	if got := f.Judge(e)[0]; got.Verdict != results.Inconclusive || got.Why != "It is too short: use --full." {
		t.Errorf("%+v", got)
	}
	c.Parts[0].Cases = Only()
	if got := f.Judge(e)[0]; got.Verdict != results.Inconclusive {
		t.Errorf("nothing was measured: %+v", got)
	}
}

func TestAParameterIsThatOfItsCell(t *testing.T) {
	e := NewEvidence([]results.Run{{Load: "low", Params: map[string]any{"workers": 20}}, {Load: "high", Params: map[string]any{"workers": 3.0}}}, 1)
	if a, b, none := e.ParamOf(Key{Load: "low"}, "workers"), e.ParamOf(Key{Load: "high"}, "workers"), e.ParamOf(Key{}, "workers"); a != 20 || b != 3 || !math.IsNaN(none) {
		t.Errorf("%v, %v, %v", a, b, none)
	}
}

func TestTheMedianOfNothingIsMissing(t *testing.T) {
	for want, xs := range map[float64][]float64{3: {3}, 5: {9, 1, 5}, 2.5: {4, 1, 3, 2}} {
		if got := Median(xs); got != want {
			t.Errorf("median of %v is %v", xs, got)
		}
	}
	if !math.IsNaN(Median(nil)) || !math.IsNaN(Median([]float64{1, math.NaN(), 2})) {
		t.Error("a median of nothing, or of something missing, is a number")
	}
}

func TestFiguresOfARunThatDoesNotHaveThemAreMissing(t *testing.T) {
	figures := []Figure{Goodput, RefusedShare, PeakRSS, Goroutines, Quantile("ok", 0.99, "p99"), speed}
	for _, f := range figures {
		if got := f.of(&results.Run{Elapsed: 1}); !math.IsNaN(Median(got)) {
			t.Errorf("%s of a run in which nothing was offered is %v", f.Name, got)
		}
	}
	if got := Goodput.of(&results.Run{Offered: 9}); !math.IsNaN(Median(got)) {
		t.Errorf("goodput of a run without its time is %v", got)
	}
	for _, f := range figures[:2] {
		if got := f.of(&results.Run{Elapsed: 1, Offered: 9}); Median(got) != 0 {
			t.Errorf("%s of a run in which all failed is %v, want 0", f.Name, got)
		}
	}
}

func TestTheBestOfNoneIsMissing(t *testing.T) {
	f := family(judge.AtMost(2))
	f.Claims[0].Parts[0].Cases = Only(Case{Setup: "s", Value: Of(cell("a"), speed).Plus(Best())})
	if got := f.Judge(NewEvidence(session(1, 1), 1))[0]; got.Verdict != results.Inconclusive || !got.Answers[0].Missing {
		t.Errorf("%s: %s", got.Verdict, got.Why)
	}
}

// A run that failed is a missing figure, of a twin too: neither may just shorten the series.
func TestAFailedRunIsMissing(t *testing.T) {
	f := family(judge.AtLeast(2))
	for name, failed := range map[string]int{"is missing in 1 of 8 repeats": 0, "has no noise floor": 2} {
		runs := session(3, 1)
		for i, r := range session(3, 1)[:3] {
			r.Repeat = judge.LeastFollow
			if i == failed {
				r.Failed = "it crashed"
			}
			runs = append(runs, r)
		}
		if got := f.Judge(NewEvidence(runs, 1))[0]; got.Verdict != results.Inconclusive || !strings.Contains(got.Why, name) {
			t.Errorf("%s: %s", got.Verdict, got.Why)
		}
	}
}

// A neighbour that takes the processor makes some blocks slower, of one contestant more
// than of the other.
func TestOfAnUndisturbedFigureTheFastQuarterCounts(t *testing.T) {
	fast := speed
	fast.Undisturbed = true
	a, b := run("a", 0, 0), run("b", 0, 0)
	a.Blocks = map[string][]float64{speed.Key: {10, 17, 10, 17, 17, 10, 17, 17}}
	b.Blocks = map[string][]float64{speed.Key: {5, 5, 9, 5, 9, 5, 5, 5}}
	e := NewEvidence([]results.Run{a, b}, 1)
	if got := e.perRepeat(Of(cell("a"), fast).Over(Of(cell("b"), fast))); fmt.Sprint(got) != "[2]" {
		t.Errorf("%v, want 2", got)
	}
	a.Blocks[speed.Key][3] = math.NaN()
	if got := e.perRepeat(Of(cell("a"), fast)); !math.IsNaN(got[0]) {
		t.Errorf("%v with a block that is missing", got)
	}
}

func TestAContestantThatIsNamedAgainIsATwin(t *testing.T) {
	want := []Key{{Setup: "s", Load: "l", Pattern: "a"}, {Setup: "s", Load: "l", Pattern: "b"}, {Setup: "s", Load: "l", Pattern: "a", Twin: true}}
	if got := Keys("s", "l", []string{"a", "b", "a"}); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
