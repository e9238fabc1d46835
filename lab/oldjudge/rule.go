package oldjudge

import (
	"math"

	"github.com/spillway-go/spillway/lab/results"
)

// Rule is the range of values in which a claim holds. The constructors are the
// only rules; the zero Rule is no rule.
type Rule struct {
	kind     kind
	low, top float64
}

type kind uint8

const (
	between kind = iota + 1
	atLeast
	atMost
	above
	below
	higher // than noise
	lower
)

// Between holds from low to high, both included.
func Between(low, high float64) Rule { return Rule{between, low, high} }

// Within holds within the share (0.1 for 10 %) of x on either side.
func Within(share, x float64) Rule { return Between(x*(1-share), x*(1+share)) }

// AtLeast holds from x upwards.
func AtLeast(x float64) Rule { return Rule{atLeast, x, math.Inf(1)} }

// AtMost holds up to x.
func AtMost(x float64) Rule { return Rule{atMost, math.Inf(-1), x} }

// Above holds for values greater than x.
func Above(x float64) Rule { return Rule{above, x, math.Inf(1)} }

// Below holds for values less than x.
func Below(x float64) Rule { return Rule{below, math.Inf(-1), x} }

// HigherThanNoise holds if a exceeds b by more than the A/A floor, and fails if b
// exceeds a by more than the floor. For [Ratio] and [Difference] only.
func HigherThanNoise() Rule { return Rule{kind: higher} }

// LowerThanNoise is the reverse of HigherThanNoise: a must be the smaller.
func LowerThanNoise() Rule { return Rule{kind: lower} }

// usesNoise reports whether the rule needs A/A runs.
func (r Rule) usesNoise() bool { return r.kind == higher || r.kind == lower }

// side says where x lies: -1 under the range, 0 in it, 1 over it.
func (r Rule) side(x float64) int {
	switch {
	case x < r.low, r.kind == above && x == r.low:
		return -1
	case x > r.top, r.kind == below && x == r.top:
		return 1
	}
	return 0
}

// decide compares the interval with the rule. Everything is on the scale of the
// figure: logs for a ratio, so that "no difference" is 0.
func (r Rule) decide(low, high, floor float64) results.Verdict {
	switch r.kind {
	case higher:
		return pastFloor(low, high, floor)
	case lower:
		return pastFloor(-high, -low, floor)
	}
	switch a, b := r.side(low), r.side(high); {
	case a == 0 && b == 0:
		return results.Holds
	case a == b:
		return results.Fails
	}
	return results.Inconclusive
}

func pastFloor(low, high, floor float64) results.Verdict {
	switch {
	case low > floor:
		return results.Holds
	case high < -floor:
		return results.Fails
	}
	return results.Inconclusive
}

// room is how far x may move before the verdict of a zero-width interval at x
// changes; 0 if x itself decides nothing.
func (r Rule) room(x, floor float64) float64 {
	if r.usesNoise() {
		return max(0, math.Abs(x)-floor)
	}
	return min(math.Abs(x-r.low), math.Abs(x-r.top))
}

// logs is the rule for the logarithms of the values.
func (r Rule) logs() Rule {
	if !r.usesNoise() {
		r.low, r.top = math.Log(max(0, r.low)), math.Log(max(0, r.top))
	}
	return r
}

// All is the verdict of a claim that needs every part: it fails with any part
// that fails, and holds when all hold.
func All(parts ...results.Verdict) results.Verdict {
	return combine(parts, results.Fails, results.Holds)
}

// Any is the verdict of a claim that needs one part: it holds with any part
// that holds, and fails when all fail.
func Any(parts ...results.Verdict) results.Verdict {
	return combine(parts, results.Holds, results.Fails)
}

// combine returns decisive if any part equals it, unanimous if all parts equal that,
// and otherwise the first other verdict.
func combine(parts []results.Verdict, decisive, unanimous results.Verdict) results.Verdict {
	undecided := unanimous
	if len(parts) == 0 {
		undecided = results.Inconclusive
	}
	for _, v := range parts {
		if v == decisive {
			return decisive
		}
		if undecided == unanimous {
			undecided = v
		}
	}
	return undecided
}
