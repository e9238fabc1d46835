package judge

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	holds        = Holds
	fails        = Fails
	inconclusive = Inconclusive
)

var nan = math.NaN()

// around is seven values near x.
func around(x float64) []float64 {
	return []float64{x - .01, x, x + .02, x - .02, x + .01, x - .015, x + .015}
}

func TestVerdictOnBothSidesOfEveryRule(t *testing.T) {
	for _, c := range []struct {
		name   string
		rule   Rule
		values []float64
		want   Verdict
	}{
		{"inside", Between(4, 5), around(4.5), holds},
		{"under", Between(4, 5), around(3.5), fails},
		{"over", Between(4, 5), around(5.5), fails},
		{"across the bound", Between(4, 5), around(5), inconclusive},
		{"wider than the range", Between(4, 5), []float64{4.4, 2, 4.5, 7, 4.6, 2, 7}, inconclusive},
		{"exactly on the bound", Between(4, 5), []float64{5, 5, 5, 5, 5}, holds},
		{"within 10 %", Within(.1, 100), around(109), holds},
		{"not within 10 %", Within(.1, 100), around(111), fails},
		{"within 10 % of a negative value", Within(.1, -100), around(-109), holds},
		{"at least", AtLeast(3), around(3.1), holds},
		{"at least, less", AtLeast(3), around(2.9), fails},
		{"at least, equal", AtLeast(3), []float64{3, 3, 3, 3, 3}, holds},
		{"at most", AtMost(3), around(2.9), holds},
		{"at most, more", AtMost(3), around(3.1), fails},
		{"above", Above(0), around(1), holds},
		{"above, equal", Above(0), []float64{0, 0, 0, 0, 0}, fails},
		{"below", Below(25), around(20), holds},
		{"below, equal", Below(25), []float64{25, 25, 25, 25, 25}, fails},
		{"outside, over", Outside(.9, 1.1), around(1.2), holds},
		{"outside, under", Outside(.9, 1.1), around(.8), holds},
		{"outside, inside", Outside(.9, 1.1), around(1), fails},
		{"outside, equal", Outside(.9, 1.1), []float64{1.1, 1.1, 1.1, 1.1, 1.1}, fails},
		{"outside on either side", Outside(.9, 1.1), []float64{.8, 1, 1.2, 1, .8, 1, 1.2}, inconclusive},
		{"outside on either side, never inside", Outside(.9, 1.1), []float64{1.2, .7, 1.3, .8, 1.4, .7, 1.2}, inconclusive},
		{"exactly", Exactly(7), []float64{7, 7, 7, 7, 7}, holds},
		{"not exactly", Exactly(7), []float64{8, 8, 8, 8, 8}, fails},
	} {
		for _, ratio := range []bool{false, true} {
			if ratio && slices.Min(c.values) <= 0 {
				continue
			}
			ans := Judge(Question{Subject: "it", Rule: c.rule, Ratio: ratio}, Input{Values: c.values, Seed: 1})
			if ans.Verdict != c.want || ans.Repeats != len(c.values) {
				t.Errorf("%s (ratio %v): %+v, want %s", c.name, ratio, ans, c.want)
			}
		}
	}
}

func TestMarginIsUsedForAndAgainst(t *testing.T) {
	quiet, loud := []float64{.01, -.02, .01, 0, .005, -.01, .015}, []float64{.3, -.25, .1, 0, .2, -.3, .25}
	for _, c := range []struct {
		name   string
		rule   Rule
		x      float64
		floor  []float64
		spread float64
		want   Verdict
		edge   bool
	}{
		{"higher", Above(1), 1.2, quiet, 0, holds, false},
		{"lower", Above(1), .8, quiet, 0, fails, false},
		{"lower was claimed", Below(1), .8, quiet, 0, holds, false},
		{"higher, lower was claimed", Below(1), 1.2, quiet, 0, fails, false},
		{"sure but within the floor", Above(1), 1.2, loud, 0, inconclusive, true},
		{"sure but within the floor, against", Below(1), 1.2, loud, 0, inconclusive, true},
		{"sure but within the spread", AtLeast(1), 1.04, quiet, .05, inconclusive, true},
		{"sure and beyond the spread", AtLeast(1), 1.1, quiet, .05, holds, false},
		{"against, within the spread", AtLeast(1), .96, quiet, .05, inconclusive, true},
		{"against, beyond the spread", AtLeast(1), .9, quiet, .05, fails, false},
		{"equal to within 10 %", Between(.9, 1.1), 1, quiet, .03, holds, false},
		{"noise wider than the range", Between(.9, 1.1), 1, loud, 0, inconclusive, true},
		{"no larger than 5 %", AtMost(1.05), 1.005, quiet, 0, holds, false},
		{"differs by more than 10 %", Outside(.9, 1.1), 1.3, quiet, .03, holds, false},
		{"does not differ by more than 10 %", Outside(.9, 1.1), 1, quiet, .03, fails, false},
		{"differs by 10 % or so", Outside(.9, 1.1), 1.11, quiet, .03, inconclusive, true},
	} {
		var values []float64
		for i := range 7 {
			values = append(values, c.x*(1+.0001*float64(3*i%7-3)))
		}
		q := Question{Subject: "a/b", Unit: "x", Ratio: true, Rule: c.rule, Spread: c.spread}
		ans := Judge(q, Input{Values: values, Floor: c.floor})
		if ans.Verdict != c.want || ans.AtEdge != c.edge || c.edge && !strings.Contains(ans.Why, "at the edge of") {
			t.Errorf("%s: %+v, want %s", c.name, ans, c.want)
		}
	}
}

func TestFigureThatCannotCrossABoundIsNotAtItsEdge(t *testing.T) {
	all := Input{Values: []float64{100, 100, 99.5, 100, 100, 99.5, 100}}
	q := Question{Subject: "it", Unit: "%", Rule: Between(95, 100), Spread: 2, Min: 0, Max: 100}
	if ans := Judge(q, all); ans.Verdict != holds || ans.High != 100 {
		t.Errorf("%+v, want it to hold", ans)
	}
	q.Max = 0
	if ans := Judge(q, all); !ans.AtEdge {
		t.Errorf("without a maximum: %+v, want it at the edge", ans)
	}
	q = Question{Subject: "it", Rule: Above(0), Spread: 1, Min: 0, Max: 100}
	if ans := Judge(q, Input{Values: make([]float64, 5)}); !ans.AtEdge {
		t.Errorf("0 is a bound that does not belong: %+v", ans)
	}
}

func TestEveryCountsTheRepeats(t *testing.T) {
	q := Question{Subject: "naive's deaths", Kind: Every, Rule: Exactly(1)}
	for _, c := range []struct {
		values []float64
		want   Verdict
		why    string
	}{
		{[]float64{1, 1, 1, 1, 1}, holds, "exactly 1 in 5 of 5 repeats"},
		{[]float64{0, 0, 2, 0, 0}, fails, "exactly 1 in 0 of 5 repeats"},
		{[]float64{1, 0, 1, 0, 1}, inconclusive, "exactly 1 in 3 of 5 repeats"},
	} {
		if ans := Judge(q, Input{Values: c.values}); ans.Verdict != c.want || ans.MoreRuns != 0 || ans.AtEdge || !strings.Contains(ans.Why, c.why) {
			t.Errorf("%v: %+v, want %s and %q", c.values, ans, c.want, c.why)
		}
	}
	q = Question{Subject: "it", Kind: Every, Rule: AtMost(20), Spread: 1}
	if ans := Judge(q, Input{Values: []float64{10, 11, 12, 13, 19.5}}); !ans.AtEdge {
		t.Errorf("one repeat nearer than the spread: %+v", ans)
	}
}

func TestNeverFailsWithOneRepeatAndHoldsWithFive(t *testing.T) {
	q := Question{Subject: "lost jobs", Kind: Never, Rule: Exactly(0)}
	for _, c := range []struct {
		values   []float64
		want     Verdict
		measured float64
		more     int
	}{
		{[]float64{0, 0, 0, 0, 0}, holds, 0, 0},
		{[]float64{0, 0, 3, 0, 0}, fails, 3, 0},
		{[]float64{2}, fails, 2, 0},
		{[]float64{2, nan, 0}, fails, 2, 0},
		{[]float64{0, 0, 0}, inconclusive, 0, 2},
		{[]float64{0, 0, nan, 0, 0, 0}, inconclusive, 0, 0},
	} {
		if ans := Judge(q, Input{Values: c.values}); ans.Verdict != c.want || ans.Measured != c.measured || ans.MoreRuns != c.more {
			t.Errorf("%v: %+v, want %s", c.values, ans, c.want)
		}
	}
	q = Question{Subject: "the share", Kind: Never, Rule: AtLeast(90)}
	if ans := Judge(q, Input{Values: []float64{99, 98, 91, 97, 99}}); ans.Measured != 91 || ans.Verdict != holds {
		t.Errorf("%+v, want the worst value, 91", ans)
	}
}

func TestMissingIsNeverZero(t *testing.T) {
	mean := Question{Subject: "it", Rule: AtMost(10)}
	ratio := Question{Subject: "it", Rule: AtMost(10), Ratio: true}
	percent := Question{Subject: "it", Rule: AtMost(10), Max: 100}
	for name, c := range map[string]struct {
		q      Question
		values []float64
		gone   string
	}{
		"not a number":     {mean, []float64{1, 2, nan, 3, 4, 5}, "missing in 1 of 6"},
		"infinite":         {mean, []float64{1, 2, math.Inf(1), 3, 4, math.Inf(-1)}, "missing in 2 of 6"},
		"a ratio of zero":  {ratio, []float64{1, 2, 0, 3, 4, 5}, "missing in 1 of 6"},
		"a negative ratio": {ratio, []float64{1, 2, -1, 3, 4, 5}, "missing in 1 of 6"},
		"over the maximum": {percent, []float64{1, 2, 101, 3, 4, 5}, "missing in 1 of 6"},
		"under the lowest": {percent, []float64{1, 2, -1, 3, 4, 5}, "missing in 1 of 6"},
		"all":              {mean, []float64{nan, nan, nan, nan, nan}, "missing in 5 of 5"},
	} {
		for _, kind := range []Kind{Median, Every, Never} {
			c.q.Kind = kind
			ans := Judge(c.q, Input{Values: c.values, Missing: "naive was killed."})
			if ans.Verdict != inconclusive || !strings.Contains(ans.Why, c.gone) || !strings.HasSuffix(ans.Why, ": naive was killed.") || ans.Measured == 0 || !math.IsNaN(ans.Low) {
				t.Errorf("%s, kind %d: %+v, want %q", name, kind, ans, c.gone)
			}
		}
	}
	if ans := Judge(mean, Input{Missing: "naive was not run."}); ans.Why != "it is missing: naive was not run." || !math.IsNaN(ans.Measured) {
		t.Errorf("%+v", ans)
	}
	if ans := Judge(mean, Input{Values: around(5), Floor: []float64{0, 0, nan, 0, 0}}); ans.Verdict != inconclusive || !math.IsNaN(ans.Floor) {
		t.Errorf("without a noise floor: %+v", ans)
	}
}

// Seven repeats are the fewest of which a correlation says something, so five decide only what cannot follow
// anything: what is the same in each of them, beside no noise, and what each repeat decides alone.
func TestAMedianIsNotJudgedBeforeSevenRepeats(t *testing.T) {
	apart := []float64{1, 1.1, 1.2, 1.1, 1, 1.1, 1.2, 1.1}
	for _, c := range []struct {
		name           string
		kind           Kind
		values, floor  []float64
		looks, more    int
		few, intervals bool
	}{
		{"values that differ, five", Median, apart[:5], nil, 0, 2, false, true},
		{"values that differ, six", Median, apart[:6], nil, 0, 1, false, true},
		{"values that differ, seven", Median, apart[:7], nil, 0, 0, false, true},
		{"beside a floor, four", Median, make([]float64, 4), make([]float64, 4), 0, 3, true, false},
		{"beside a floor, five", Median, make([]float64, 5), make([]float64, 5), 0, 2, true, true},
		{"beside a floor, seven", Median, make([]float64, 7), make([]float64, 7), 0, 0, false, true},
		{"always the same, four", Median, make([]float64, 4), nil, 0, 1, true, false},
		{"always the same, five", Median, make([]float64, 5), nil, 0, 0, false, true},
		{"none", Median, nil, nil, 0, 5, true, false},
		{"always the same, five, at the second look", Median, make([]float64, 5), nil, 1, 1, false, false},
		{"always the same, six, at the fourth look", Median, make([]float64, 6), nil, 3, 2, false, false},
		{"values that differ, seven, at the fourth look", Median, apart[:7], nil, 3, 1, false, false},
		{"every, five", Every, apart[:5], nil, 0, 0, false, true},
		{"never, five", Never, apart[:5], nil, 0, 0, false, true},
		{"never, four", Never, apart[:4], nil, 0, 1, true, false},
	} {
		ans := Judge(Question{Kind: c.kind, Rule: AtMost(10)}, Input{Values: c.values, Floor: c.floor, Looks: c.looks})
		if (ans.Verdict == holds) != (c.more == 0) || ans.MoreRuns != c.more || ans.Few != c.few || math.IsNaN(ans.Low) == c.intervals {
			t.Errorf("%s: %+v", c.name, ans)
		}
	}
}

func TestMoreRunsSettleWhatIsUncertainAndNotWhatLiesOnTheEdge(t *testing.T) {
	q := Question{Subject: "it", Rule: AtLeast(11.8)}
	if ans := Judge(q, Input{Values: []float64{12, 13, 9.9, 12.5, 13, 12.2, 12.8}}); ans.Verdict != inconclusive || ans.MoreRuns < 1 || ans.MoreRuns > 50 {
		t.Errorf("uncertain: %+v", ans)
	}
	for _, values := range [][]float64{{8, 11, 9, 12, 10, 8, 12}, {10.1, 10.1, 10.1, 10.1, 10.1}} {
		if ans := Judge(Question{Subject: "it", Rule: AtLeast(10), Spread: .2}, Input{Values: values}); ans.Verdict != inconclusive || !ans.AtEdge || ans.MoreRuns != 0 {
			t.Errorf("on the edge: %+v", ans)
		}
	}
}

func TestRatiosAreJudgedAlikeEitherWayRound(t *testing.T) {
	ratios := []float64{4.1, 4.6, 4.4, 4.3, 4.5, 4.2, 4.7}
	var turned []float64
	for _, r := range ratios {
		turned = append(turned, 1/r)
	}
	a := Judge(Question{Ratio: true, Spread: .02, Rule: Between(4, 5)}, Input{Values: ratios})
	b := Judge(Question{Ratio: true, Spread: .02, Rule: Between(.2, .25)}, Input{Values: turned})
	if a.Verdict != holds || b.Verdict != holds || math.Abs(a.Measured*b.Measured-1) > 1e-12 || math.Abs(a.Low*b.High-1) > 1e-12 {
		t.Errorf("a/b %+v, b/a %+v", a, b)
	}
}

func TestWhyIsAPlainSentenceWithTheNumbers(t *testing.T) {
	ratio := Question{Subject: "naive/workerpool throughput", Unit: "x", Ratio: true, Rule: Between(4, 5)}
	cost := Question{Subject: "a call", Unit: "ns", Rule: AtMost(10), Spread: 1}
	for _, c := range []struct {
		q    Question
		in   Input
		want string
	}{
		{ratio, Input{Values: []float64{4.31, 4.2, 4.4, 4.3, 4.32, 4.2, 4.4}, Disturbed: []int{1, 3}},
			"naive/workerpool throughput was 4.31x (4.20–4.40, median of 7 repeats), which is inside 4–5x; other processes disturbed repeat 2 and 4."},
		{ratio, Input{Values: []float64{6, 6, 6, 6, 6, 6, 6}, Floor: []float64{.02, 0, .02, 0, .02, 0, .02}},
			"naive/workerpool throughput was 6x (always the same, median of 7 repeats), which is not inside 4–5x, clear of the bounds by more than the 2.02 % by which the same contestant differs from itself."},
		{ratio, Input{Values: []float64{4.5, 4.4, 5.02, 4.5, 5.02, 4.4, 4.55}},
			"naive/workerpool throughput was 4.50x (4.40–5.02, median of 7 repeats), too uncertain for the rule (4–5x); N more should settle it."},
		{cost, Input{Values: []float64{9.5, 9.4, 9.6, 9.5, 9.6, 9.4, 9.5}},
			"a call was 9.50 ns (9.40–9.60, median of 7 repeats), at the edge of the rule (at most 10 ns): sessions differ by 1 ns; more repeats would not help, it needs a figure that is farther from the edge than sessions differ."},
		{Question{Subject: "the peak", Kind: Never, Rule: AtMost(20)}, Input{Values: []float64{20, 19, 21, 20, 20}},
			"the peak was 21 at worst (19–21, 5 repeats), which is at most 20 in 4 of 5 repeats."},
		{Question{Subject: "the peak", Kind: Every, Rule: AtMost(20)}, Input{Values: []float64{20, 19, 21, 20, 20}},
			"the peak was 20 (19–21, 5 repeats), which is at most 20 in 4 of 5 repeats; more repeats would not help, it needs the reason why they differ."},
		{cost, Input{Values: []float64{9, 9}}, "a call has 2 of the 5 repeats that a verdict needs; it needs 3 more."},
		{cost, Input{Values: []float64{9, 9.1}}, "a call has 2 of the 7 repeats that a verdict needs; it needs 5 more."},
	} {
		ans := Judge(c.q, c.in)
		if want := strings.Replace(c.want, "N", strconv.Itoa(ans.MoreRuns), 1); ans.Why != want {
			t.Errorf("why:\n%s\nwant:\n%s", ans.Why, want)
		}
	}
}

func TestLaterLooksTakeAWiderInterval(t *testing.T) {
	in := Input{Values: []float64{6, 2, 9, 4, 1, 10, 7, 3, 8, 5}}
	before := inf
	for looks, from := range []float64{2, 2, 1, 1} { // 2·11/1024 is at most 1/32, not 1/64
		in.Looks = looks
		ans := Judge(Question{Rule: AtLeast(0)}, in)
		if ans.Low < from || ans.Low > from+1 || ans.Low >= before || math.Abs(ans.Low+ans.High-11) > 1e-9 || ans.Measured != 5.5 {
			t.Errorf("look %d: %+v, want the low end between %v and %v", looks, ans, from, from+1)
		}
		before = ans.Low
	}
}

func TestRepeatsThatFollowEachOtherCountForFewer(t *testing.T) {
	q := Question{Subject: "it", Rule: AtLeast(0)}
	mixed, drifting := Input{Seed: 1}, Input{Seed: 1}
	for i := range 20 {
		mixed.Values = append(mixed.Values, float64((7*i)%20)-4)
		drifting.Values = append(drifting.Values, float64(i)-4)
	}
	a, b := Judge(q, mixed), Judge(q, drifting)
	if a.Verdict != holds || b.Verdict != inconclusive || !strings.Contains(b.Why, "follow each other, lag-1 correlation 0.9") || b.MoreRuns == 0 {
		t.Errorf("mixed: %+v\ndrifting: %+v", a, b)
	}
	q.Rule = AtLeast(-100)
	var steps Input
	for i := range 20 {
		steps.Values = append(steps.Values, float64((7*(i/2))%20)+0.1*float64(i%2))
	}
	if ans := Judge(q, Input{Values: drifting.Values[:9]}); ans.Verdict != holds {
		t.Errorf("far from the bound: %+v", ans) // nine repeats that follow each other once had no interval at all
	}
	if ans := Judge(q, steps); ans.Verdict != holds || !strings.Contains(ans.Why, "repeats that follow each other, lag-1 correlation") {
		t.Errorf("%+v: want the correlation said", ans)
	}
}

func TestIntervalNearerThanTheMarginIsAtTheEdge(t *testing.T) {
	q := Question{Subject: "it", Unit: "x", Rule: AtLeast(1), Ratio: true, Spread: .1}
	in := Input{Values: []float64{1.3, 1.05, 1.3, 1.35, 1.3, 1.05, 1.35}}
	if ans := Judge(q, in); !ans.AtEdge || math.Abs(ans.Floor-.1) > 1e-12 {
		t.Errorf("%+v, want it at the edge by 0.1", ans)
	}
	in.Values[1], in.Values[5] = .95, .95
	if ans := Judge(q, in); ans.AtEdge || ans.Verdict != inconclusive {
		t.Errorf("%+v, want it uncertain, not at the edge", ans)
	}
}

func TestAQuestionWithoutAMeaningIsNotJudged(t *testing.T) {
	values := []float64{1, 1, 1, 1, 1}
	for _, q := range []Question{{Rule: Below(math.NaN())}, {Rule: Between(5, 4)}, {Rule: AtLeast(0), Kind: 9}, {Rule: AtLeast(0), Spread: -1}} {
		if got := Judge(q, Input{Values: values}); got.Verdict != Inconclusive || !strings.Contains(got.Why, "cannot be judged") {
			t.Errorf("%+v: %s, %s", q, got.Verdict, got.Why)
		}
	}
	if got := Judge(Question{Rule: AtLeast(0), Max: 100}, Input{Values: []float64{1, 1, 1, 1, 101}}); !strings.Contains(got.Why, "101 is no value") {
		t.Error(got.Why)
	}
}
