package oldjudge

import (
	"math"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/results"
)

func TestSelftestFindsWhatIsThereAndNothingElse(t *testing.T) {
	t.Parallel()
	// Not a lucky seed: over 3,000 trials the judge makes 0.1 % false verdicts
	// and finds 99 % of the 20 % effects at three repeats.
	if report := Selftest(200, 1, Judge); report.Err() != nil {
		t.Errorf("%v\n%s", report.Err(), report)
	}
}

// always is a judge that ignores its input.
func always(v results.Verdict) Func {
	return func(Question, Input) Answer { return Answer{Verdict: v} }
}

// hasty uses only the direction of the mean.
func hasty(q Question, in Input) Answer {
	if average(in.figures(q.Figure)) > 0 {
		return Answer{Verdict: results.Holds}
	}
	return Answer{Verdict: results.Fails}
}

// narrow is Judge without a noise floor and without the correction for few
// repeats.
func narrow(q Question, in Input) Answer {
	xs := in.figures(q.Figure)
	tail, head := percentileInterval(xs, in.Seed)
	return Answer{Verdict: q.Rule.decide(tail, head, 0)}
}

func percentileInterval(xs []float64, seed uint64) (low, high float64) {
	mean, low, high := estimate(xs, seed)
	stretch := studentQuantile(0.975, len(xs)-1) / normal975 * math.Sqrt(float64(len(xs))/float64(len(xs)-1))
	return mean - (mean-low)/stretch, mean + (high-mean)/stretch
}

// blind finds effects in one direction only.
func blind(q Question, in Input) Answer {
	ans := Judge(q, in)
	if ans.Verdict == results.Fails {
		ans.Verdict = results.Inconclusive
	}
	return ans
}

// backwards swaps the contestants.
func backwards(q Question, in Input) Answer {
	for i, p := range in.Pairs {
		in.Pairs[i] = Pair{A: p.B, B: p.A}
	}
	return Judge(q, in)
}

func TestSelftestCatchesBadJudges(t *testing.T) {
	t.Parallel()
	for name, judge := range map[string]Func{
		"always holds":        always(results.Holds),
		"always fails":        always(results.Fails),
		"always inconclusive": always(results.Inconclusive),
		"hasty":               hasty,
		"narrow":              narrow,
		"blind on one eye":    blind,
		"backwards":           backwards,
	} {
		if report := Selftest(30, 1, judge); report.Err() == nil {
			t.Errorf("the %q judge passed:\n%s", name, report)
		}
	}
}

func TestSelftestWithoutTrialsProvesNothing(t *testing.T) {
	if Selftest(0, 1, Judge).Err() == nil {
		t.Error("no trials passed")
	}
}

func TestSelftestCountsAddUpAndRepeat(t *testing.T) {
	a, b := Selftest(10, 7, Judge), Selftest(10, 7, Judge)
	if a.String() != b.String() {
		t.Error("the same seed gave two reports")
	}
	for _, row := range a.Rows {
		if row.Holds+row.Fails+row.Inconclusive != 10 || row.Found+row.False != row.Holds+row.Fails {
			t.Errorf("%+v does not add up to 10 trials", row)
		}
	}
	if !strings.Contains(a.String(), "An effect of 5 %") {
		t.Error("the report is silent about small effects")
	}
}
