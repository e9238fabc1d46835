package oldjudge

import (
	"fmt"
	"strings"

	"github.com/spillway-go/spillway/lab/internal/numbers"
	"github.com/spillway-go/spillway/lab/results"
)

// why is the answer in one sentence: what was measured, what kind of figure that is,
// and where it lies relative to the rule.
func (q Question) why(ans Answer) string {
	return fmt.Sprintf("%s was %s %s, %s.", q.Subject, q.value(ans.Measured), q.basis(ans), q.relation(ans))
}

// basis is the interval and the kind of figure, in brackets.
func (q Question) basis(ans Answer) string {
	switch q.Figure {
	case Peak:
		return fmt.Sprintf("(the most in %d runs)", ans.Runs)
	case Ratio:
		return fmt.Sprintf("(%s; geometric mean of %d paired ratios)", span(ans.Low, ans.High), ans.Runs)
	case Difference:
		return fmt.Sprintf("(%s; mean of %d paired differences)", span(ans.Low, ans.High), ans.Runs)
	}
	return fmt.Sprintf("(%s; mean of %d runs)", span(ans.Low, ans.High), ans.Runs)
}

// relation says where the interval lies relative to the rule.
func (q Question) relation(ans Answer) string {
	if q.Rule.usesNoise() {
		return q.noiseRelation(ans)
	}
	switch ans.Verdict {
	case results.Holds:
		if q.Rule.kind == between && q.Rule.low == q.Rule.top {
			return "exactly " + q.bounds()
		}
		if q.Rule.kind == between {
			return "inside " + q.bounds()
		}
		return q.bounds()
	case results.Fails:
		return q.missed(ans.Measured)
	}
	return "which is partly inside and partly outside " + q.bounds() + advice(ans)
}

func (q Question) noiseRelation(ans Answer) string {
	floor := q.floor(ans.NoiseFloor)
	switch holds := ans.Verdict == results.Holds; {
	case ans.Verdict == results.Inconclusive:
		return fmt.Sprintf("not clearly beyond the %s by which the same contestant differs from itself%s", floor, advice(ans))
	case holds == (q.Rule.kind == higher):
		return fmt.Sprintf("higher by more than the %s by which the same contestant differs from itself", floor)
	}
	return fmt.Sprintf("lower by more than the %s by which the same contestant differs from itself", floor)
}

func advice(ans Answer) string {
	switch ans.MoreRuns {
	case 0:
		return "; more runs would not help"
	case 1:
		return "; 1 more run should settle it"
	}
	return fmt.Sprintf("; %d more runs should settle it", ans.MoreRuns)
}

func (q Question) tooFew(n int, what string) string {
	return fmt.Sprintf("%s has %d of the %d %s that a verdict needs.", q.Subject, n, MinRepeats, what)
}

func (q Question) unusable() string {
	if q.Figure == Ratio {
		return fmt.Sprintf("%s has a repeat without a positive value on both sides, so it has no ratio.", q.Subject)
	}
	return fmt.Sprintf("%s has a repeat without a usable value.", q.Subject)
}

// missed says in words how x is outside the rule's range.
func (q Question) missed(x float64) string {
	switch q.Rule.kind {
	case atLeast:
		return "less than " + q.bound(q.Rule.low)
	case atMost:
		return "more than " + q.bound(q.Rule.top)
	case between:
		if q.Rule.side(x) > 0 {
			return "above " + q.bounds()
		}
		return "below " + q.bounds()
	}
	return "not " + q.bounds()
}

// bounds is the rule's range in words.
func (q Question) bounds() string {
	switch q.Rule.kind {
	case between:
		if q.Rule.low == q.Rule.top {
			return q.bound(q.Rule.top)
		}
		return trimmed(q.Rule.low) + "–" + q.bound(q.Rule.top)
	case atLeast:
		return "at least " + q.bound(q.Rule.low)
	case atMost:
		return "at most " + q.bound(q.Rule.top)
	case above:
		return "above " + q.bound(q.Rule.low)
	case below:
		return "below " + q.bound(q.Rule.top)
	}
	return "a rule that is not set"
}

func (q Question) value(x float64) string { return number(x) + q.unit() }

// bound writes a chosen value: 1.1, where value writes 1.10.
func (q Question) bound(x float64) string { return trimmed(x) + q.unit() }

func trimmed(x float64) string {
	if s := number(x); strings.Contains(s, ".") {
		return strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return number(x)
}

func (q Question) unit() string {
	if q.Unit == "x" || q.Unit == "" {
		return q.Unit
	}
	return " " + q.Unit
}

// floor is the noise floor in words: of a ratio, in per cent.
func (q Question) floor(x float64) string {
	if q.Figure == Ratio {
		return trimmed(100*x) + " %"
	}
	return q.value(x)
}

func span(low, high float64) string {
	separator := "–"
	if low < 0 || high < 0 {
		separator = " to "
	}
	return number(low) + separator + number(high)
}

// number writes figures in the format of the charts.
func number(x float64) string { return numbers.Format(x) }
