package oldjudge

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/results"
)

const (
	holds        = results.Holds
	fails        = results.Fails
	inconclusive = results.Inconclusive
)

// pairs makes pairs with these ratios.
func pairs(ratios ...float64) []Pair {
	var out []Pair
	for i, r := range ratios {
		b := 100 + float64(7*i) // the level drifts, the ratio does not
		out = append(out, Pair{A: r * b, B: b})
	}
	return out
}

func TestRulesNeedBothEndsOfTheInterval(t *testing.T) {
	tight := func(x float64) []float64 { return []float64{x - 0.01, x, x + 0.01} }
	for _, c := range []struct {
		name   string
		rule   Rule
		values []float64
		want   results.Verdict
	}{
		{"inside", Between(4, 5), tight(4.5), holds},
		{"under", Between(4, 5), tight(3.5), fails},
		{"over", Between(4, 5), tight(5.5), fails},
		{"over the edge", Between(4, 5), tight(5), inconclusive},
		{"wider than the range", Between(4, 5), []float64{2, 4.5, 7}, inconclusive},
		{"exactly on the edge", Between(4, 5), []float64{5, 5, 5}, holds},
		{"within 10 %", Within(0.1, 100), tight(109), holds},
		{"not within 10 %", Within(0.1, 100), tight(111), fails},
		{"at least", AtLeast(3), tight(3.1), holds},
		{"at least, less", AtLeast(3), tight(2.9), fails},
		{"at least, about", AtLeast(3), tight(3), inconclusive},
		{"at least, equal", AtLeast(3), []float64{3, 3, 3}, holds},
		{"at most", AtMost(3), tight(2.9), holds},
		{"at most, more", AtMost(3), tight(3.1), fails},
		{"at most, equal", AtMost(3), []float64{3, 3, 3}, holds},
		{"above", Above(0), tight(1), holds},
		{"above, equal", Above(0), []float64{0, 0, 0}, fails},
		{"below", Below(25), tight(20), holds},
		{"below, equal", Below(25), []float64{25, 25, 25}, fails},
		{"below, about", Below(25), tight(25), inconclusive},
	} {
		ans := Judge(Question{Subject: "it", Rule: c.rule}, Input{Values: c.values, Seed: 1})
		if ans.Verdict != c.want {
			t.Errorf("%s: %s, want %s (%s)", c.name, ans.Verdict, c.want, ans.Why)
		}
	}
}

func TestDifferenceMustClearTheNoiseFloor(t *testing.T) {
	quiet, loud := pairs(1.01, 0.99, 1.005), pairs(1.3, 0.8, 1.1)
	for _, c := range []struct {
		name   string
		rule   Rule
		ratios []Pair
		aa     []Pair
		want   results.Verdict
	}{
		{"higher", HigherThanNoise(), pairs(1.2, 1.21, 1.19), quiet, holds},
		{"lower", HigherThanNoise(), pairs(0.8, 0.81, 0.79), quiet, fails},
		{"lower was claimed", LowerThanNoise(), pairs(0.8, 0.81, 0.79), quiet, holds},
		{"higher, lower was claimed", LowerThanNoise(), pairs(1.2, 1.21, 1.19), quiet, fails},
		{"sure but within the floor", HigherThanNoise(), pairs(1.2, 1.21, 1.19), loud, inconclusive},
		{"tiny but sure", HigherThanNoise(), pairs(1.003, 1.0031, 1.0029), quiet, inconclusive},
		{"nothing", HigherThanNoise(), pairs(1, 1, 1), quiet, inconclusive},
		{"large but unsure", HigherThanNoise(), pairs(1.0, 1.2, 1.5), quiet, inconclusive},
		{"floor unknown", HigherThanNoise(), pairs(1.2, 1.21, 1.19), nil, inconclusive},
	} {
		q := Question{Subject: "a/b", Unit: "x", Figure: Ratio, Rule: c.rule}
		if ans := Judge(q, Input{Pairs: c.ratios, AA: c.aa, Seed: 1}); ans.Verdict != c.want {
			t.Errorf("%s: %s, want %s (%s)", c.name, ans.Verdict, c.want, ans.Why)
		}
	}
}

func TestNoiseOfADifferenceIsADifference(t *testing.T) {
	q := Question{Subject: "a − b", Unit: "points", Figure: Difference, Rule: LowerThanNoise()}
	aa := []Pair{{5, 5.5}, {5, 5}, {5.2, 5}}
	ans := Judge(q, Input{Pairs: []Pair{{3, 5}, {3, 5.1}, {0, 2.1}}, AA: aa})
	if ans.Verdict != holds || ans.NoiseFloor != 0.5 {
		t.Errorf("%+v, want it to hold with a floor of 0.5", ans)
	}
}

func TestPeakIsCountedNotEstimated(t *testing.T) {
	bound := Question{Subject: "peak", Figure: Peak, Rule: AtMost(20)}
	if ans := Judge(bound, Input{Values: []float64{18, 20, 20}}); ans.Verdict != holds || ans.Low != 20 || ans.High != 20 {
		t.Errorf("at the bound: %+v", ans)
	}
	if ans := Judge(bound, Input{Values: []float64{18, 21, 20}}); ans.Verdict != fails {
		t.Errorf("one breach breaks a bound: %+v", ans)
	}
	once := Question{Subject: "count", Figure: Peak, Rule: Above(0)}
	if ans := Judge(once, Input{Values: []float64{0, 900, 0}}); ans.Verdict != holds {
		t.Errorf("one sighting is a sighting: %+v", ans)
	}
}

func TestWhatCannotBeJudgedIsInconclusiveAndSaysWhy(t *testing.T) {
	ratio := Question{Subject: "a/b", Unit: "x", Figure: Ratio, Rule: Between(4, 5)}
	for name, c := range map[string]struct {
		in   Input
		why  string
		more int
	}{
		"two repeats": {Input{Pairs: pairs(4.5, 4.5)}, "2 of the 3 repeats", 1},
		"no repeats":  {Input{}, "0 of the 3 repeats", 3},
		"zero":        {Input{Pairs: []Pair{{4, 1}, {0, 1}, {4, 1}}}, "no ratio", 0},
		"by zero":     {Input{Pairs: []Pair{{4, 1}, {4, 0}, {4, 1}}}, "no ratio", 0},
		"infinite":    {Input{Pairs: []Pair{{4, 1}, {math.Inf(1), 1}, {4, 1}}}, "no ratio", 0},
		"missing":     {Input{Missing: "Nothing ran above 1,000 req/s."}, "Nothing ran", 0},
	} {
		ans := Judge(ratio, c.in)
		if ans.Verdict != inconclusive || !strings.Contains(ans.Why, c.why) || ans.MoreRuns != c.more || ans.Low != 0 || ans.High != 0 {
			t.Errorf("%s: %+v, want inconclusive, %d more runs and %q", name, ans, c.more, c.why)
		}
	}
	mean := Question{Subject: "a", Rule: Above(1)}
	if ans := Judge(mean, Input{Values: []float64{1, math.NaN(), 2}}); ans.Verdict != inconclusive {
		t.Errorf("not a number: %+v", ans)
	}
}

func TestMoreRunsSettleWhatStraddlesAndNotWhatLiesOnTheEdge(t *testing.T) {
	q := Question{Subject: "it", Rule: AtLeast(10)}
	if ans := Judge(q, Input{Values: []float64{10.5, 9.9, 11.1}}); ans.Verdict != inconclusive || ans.MoreRuns == 0 {
		t.Errorf("straddling: %+v", ans)
	}
	if ans := Judge(q, Input{Values: []float64{9, 10, 11}}); ans.Verdict != inconclusive || ans.MoreRuns != 0 {
		t.Errorf("on the edge: %+v", ans)
	}
	same := Question{Subject: "a/b", Unit: "x", Figure: Ratio, Rule: HigherThanNoise()}
	if ans := Judge(same, Input{Pairs: pairs(1.001, 0.999, 1), AA: pairs(1.01, 1, 1)}); ans.MoreRuns != 0 {
		t.Errorf("within the floor no number of runs helps: %+v", ans)
	}
}

func TestRatiosAreJudgedAlikeEitherWayRound(t *testing.T) {
	in := Input{Pairs: pairs(4.1, 4.6, 4.4, 4.3), Seed: 5}
	turned := Input{Seed: 5}
	for _, p := range in.Pairs {
		turned.Pairs = append(turned.Pairs, Pair{A: p.B, B: p.A})
	}
	a := Judge(Question{Figure: Ratio, Rule: Between(4, 5)}, in)
	b := Judge(Question{Figure: Ratio, Rule: Between(0.2, 0.25)}, turned)
	if a.Verdict != b.Verdict || math.Abs(a.Measured*b.Measured-1) > 1e-12 || math.Abs(a.Low*b.High-1) > 0.01 {
		t.Errorf("a/b %+v, b/a %+v", a, b)
	}
}

func TestSameSeedSameAnswer(t *testing.T) {
	q := Question{Subject: "it", Figure: Ratio, Rule: HigherThanNoise()}
	in := Input{Pairs: pairs(1.05, 1.11, 1.02, 1.08, 1.06), AA: pairs(1.01, 0.99, 1), Seed: 42}
	if a, b := Judge(q, in), Judge(q, in); !reflect.DeepEqual(a, b) {
		t.Errorf("%+v and %+v", a, b)
	}
}

func TestWhyIsAPlainSentenceWithTheNumbers(t *testing.T) {
	ratio := Question{Subject: "naive/pool throughput", Unit: "x", Figure: Ratio, Rule: Between(4, 5)}
	goodput := Question{Subject: "the pool's goodput", Unit: "req/s", Rule: Within(0.1, 2124)}
	noise := Question{Subject: "a/b p99", Unit: "x", Figure: Ratio, Rule: LowerThanNoise()}
	aa := pairs(1.03, 1, 0.99)
	for _, c := range []struct {
		q    Question
		in   Input
		want string
	}{
		{ratio, Input{Pairs: pairs(4.31, 4.31, 4.31)},
			"naive/pool throughput was 4.31x (4.31–4.31; geometric mean of 3 paired ratios), inside 4–5x."},
		{goodput, Input{Values: []float64{250, 250, 250}},
			"the pool's goodput was 250 req/s (250–250; mean of 3 runs), below 1,912–2,336 req/s."},
		{noise, Input{Pairs: pairs(0.8, 0.8, 0.8), AA: aa},
			"a/b p99 was 0.8x (0.8–0.8; geometric mean of 3 paired ratios), lower by more than the 3 % by which the same contestant differs from itself."},
		{noise, Input{Pairs: pairs(1, 1, 1), AA: aa},
			"a/b p99 was 1x (1–1; geometric mean of 3 paired ratios), not clearly beyond the 3 % by which the same contestant differs from itself; more runs would not help."},
		{Question{Subject: "the peak", Figure: Peak, Rule: AtMost(20)}, Input{Values: []float64{20, 19, 21}},
			"the peak was 21 (the most in 3 runs), more than 20."},
	} {
		if got := Judge(c.q, c.in).Why; got != c.want {
			t.Errorf("why:\n%s\nwant:\n%s", got, c.want)
		}
	}
}

func TestPartsCombine(t *testing.T) {
	hardware := results.NeedsHardware
	for _, c := range []struct {
		parts    []results.Verdict
		all, any results.Verdict
	}{
		{[]results.Verdict{holds, holds}, holds, holds},
		{[]results.Verdict{holds, fails}, fails, holds},
		{[]results.Verdict{fails, fails}, fails, fails},
		{[]results.Verdict{holds, inconclusive}, inconclusive, holds},
		{[]results.Verdict{inconclusive, fails}, fails, inconclusive},
		{[]results.Verdict{holds, hardware}, hardware, holds},
		{nil, inconclusive, inconclusive},
	} {
		if got := All(c.parts...); got != c.all {
			t.Errorf("all of %v: %s, want %s", c.parts, got, c.all)
		}
		if got := Any(c.parts...); got != c.any {
			t.Errorf("any of %v: %s, want %s", c.parts, got, c.any)
		}
	}
}
