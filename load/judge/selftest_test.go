package judge

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
)

func TestSelftestPassesTheJudge(t *testing.T) {
	t.Parallel()
	soak.WithoutRace(t)
	if report := Selftest(500, 1, Judge); report.Err() != nil {
		t.Errorf("%v\n%s", report.Err(), report)
	}
}

func TestSelftestCatchesBadJudges(t *testing.T) {
	t.Parallel()
	soak.WithoutRace(t)
	always := func(v Verdict) Func {
		return func(Question, Input) Answer { return Answer{Verdict: v, Low: -inf, High: inf} }
	}
	// changed is the judge with another question or another answer.
	changed := func(before func(*Question), after func(*Answer)) Func {
		return func(q Question, in Input) Answer {
			before(&q)
			ans := Judge(q, in)
			after(&ans)
			return ans
		}
	}
	asked, answered := func(*Question) {}, func(*Answer) {}
	for name, c := range map[string]struct {
		judge Func
		fails string // one of the tests that must fail
	}{
		"always holds":        {always(holds), "wrong at a bound in three looks"},
		"always fails":        {always(fails), "wrong at a bound in three looks"},
		"always inconclusive": {always(inconclusive), "is found"},
		"narrow": {changed(asked, func(a *Answer) {
			a.Low, a.High = a.Measured-.7*(a.Measured-a.Low), a.Measured+.7*(a.High-a.Measured)
		}), "contains the median"},
		"takes sessions for one": {changed(func(q *Question) { q.Spread = 0 }, answered), "sessions cross by the spread"},
		"backwards":              {changed(func(q *Question) { q.Rule.Outside = !q.Rule.Outside }, answered), "is found"},
		"blind to what is lower": {changed(asked, func(a *Answer) {
			if a.Verdict == fails {
				a.Verdict = inconclusive
			}
		}), "is found"},
		"advises too few repeats": {changed(asked, func(a *Answer) { a.MoreRuns = min(1, a.MoreRuns) }), "as advised"},
	} {
		report := Selftest(200, 1, c.judge)
		if err := report.Err(); err == nil || !strings.Contains(err.Error(), c.fails) {
			t.Errorf("the judge that %s passed %q:\n%s", name, c.fails, report)
		}
	}
}

func TestSelftestWithoutTrialsProvesNothing(t *testing.T) {
	if Selftest(0, 1, Judge).Err() == nil {
		t.Error("no trials passed")
	}
}

func TestSelftestIsAFunctionOfItsSeed(t *testing.T) {
	if a, b := Selftest(20, 7, Judge), Selftest(20, 7, Judge); a.String() != b.String() {
		t.Errorf("the same seed gave two reports:\n%s%s", a, b)
	}
}
