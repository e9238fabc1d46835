package judge

import (
	"encoding/json"
	"math"
	"testing"
)

func TestRulesInWordsAndInJSON(t *testing.T) {
	for _, c := range []struct {
		rule              Rule
		unit, words, json string
		in, out           float64
	}{
		{Between(4, 5), "x", "4–5x", `{"low":4,"top":5}`, 5, 5.1},
		{AtLeast(100), "x", "at least 100x", `{"low":100}`, 100, 99},
		{AtMost(1.005), "req/s", "at most 1.005 req/s", `{"top":1.005}`, 1.005, 1.006},
		{Above(2500), "", "above 2,500", `{"low":2500,"open":true}`, 2501, 2500},
		{Below(.9), "x", "below 0.9x", `{"open":true,"top":0.9}`, .89, .9},
		{Outside(.9, 1.1), "x", "outside 0.9–1.1x", `{"low":0.9,"open":true,"outside":true,"top":1.1}`, 1.2, 1.1},
		{Exactly(0), "", "exactly 0", `{"low":0,"top":0}`, 0, 1},
		{Within(.1, 2124), "req/s", "1,911.6–2,336.4 req/s", `{"low":1911.6,"top":2336.4}`, 2000, 2400},
		{Between(-1, 1), "points", "−1 to 1 points", `{"low":-1,"top":1}`, 0, 2},
		{Rule{Low: 4, Top: 5, Open: true}, "x", "above 4x and below 5x", `{"low":4,"open":true,"top":5}`, 4.5, 5},
		{Rule{Low: 4, Top: 5, Outside: true}, "x", "not above 4x and below 5x", `{"low":4,"outside":true,"top":5}`, 5, 4.5},
		{Outside(math.Inf(-1), 5), "%", "not at most 5 %", `{"open":true,"outside":true,"top":5}`, 6, 5},
		{Outside(5, math.Inf(1)), "%", "not at least 5 %", `{"low":5,"open":true,"outside":true}`, 4, 5},
		{Outside(5, 5), "%", "not exactly 5 %", `{"low":5,"open":true,"outside":true,"top":5}`, 4, 5},
		{Between(math.Inf(-1), math.Inf(1)), "x", "any value", `{}`, 7, math.NaN()},
	} {
		if got := c.rule.Words(c.unit); got != c.words {
			t.Errorf("%+v in words: %q, want %q", c.rule, got, c.words)
		}
		if !c.rule.Contains(c.in) || c.rule.Contains(c.out) {
			t.Errorf("%s contains %v: %v, %v: %v", c.words, c.in, c.rule.Contains(c.in), c.out, c.rule.Contains(c.out))
		}
		data, err := json.Marshal(c.rule)
		if err != nil || string(data) != c.json {
			t.Errorf("%s as JSON: %s %v, want %s", c.words, data, err, c.json)
		}
	}
	for _, bad := range []Rule{AtLeast(math.NaN()), AtLeast(math.Inf(1)), AtMost(math.Inf(-1))} {
		if data, err := json.Marshal(bad); err == nil {
			t.Errorf("%+v became %s", bad, data)
		}
	}
	if err := json.Unmarshal([]byte(`"at least 3"`), new(Rule)); err == nil {
		t.Error("words are no rule")
	}
}

func FuzzRulesSurviveJSON(f *testing.F) {
	f.Add(4.0, 5.0, false, false)
	f.Add(math.Inf(-1), 0.1, true, true)
	f.Fuzz(func(t *testing.T, low, top float64, open, outside bool) {
		rule := Rule{low, top, open, outside}
		data, err := json.Marshal(rule)
		if err != nil {
			if low == low && top == top && !math.IsInf(low, 1) && !math.IsInf(top, -1) {
				t.Fatalf("%+v: %v", rule, err)
			}
			return
		}
		var back Rule
		if err := json.Unmarshal(data, &back); err != nil || back != rule {
			t.Fatalf("%+v became %s and then %+v (%v)", rule, data, back, err)
		}
		if rule.Words("x") == "" || low <= top && !outside && rule.Contains(low) == open && !math.IsInf(low, 0) && low < top {
			t.Fatalf("%+v: words %q, contains its bound: %v", rule, rule.Words("x"), rule.Contains(low))
		}
	})
}

func TestPartsCombine(t *testing.T) {
	hardware := NeedsHardware
	for _, c := range []struct {
		parts    []Verdict
		all, any Verdict
	}{
		{[]Verdict{holds, holds}, holds, holds},
		{[]Verdict{holds, fails}, fails, holds},
		{[]Verdict{fails, fails}, fails, fails},
		{[]Verdict{holds, inconclusive}, inconclusive, holds},
		{[]Verdict{inconclusive, fails}, fails, inconclusive},
		{[]Verdict{holds, hardware}, hardware, holds},
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
