package judge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/spillway-go/spillway/load/numbers"
)

// Rule is the range of values in which a claim holds. It is data: results.json
// carries it, and charts draw it. The zero Rule is exactly 0.
type Rule struct {
	Low, Top float64 // -Inf, +Inf: no bound
	Open     bool    // the bounds themselves do not satisfy the rule
	Outside  bool    // the rule holds outside of the range instead
}

var inf = math.Inf(1)

// Between holds from low to top, both included.
func Between(low, top float64) Rule { return Rule{Low: low, Top: top} }

// Within holds within the share (0.1 for 10 %) of x on either side.
func Within(share, x float64) Rule { return Between(x-share*math.Abs(x), x+share*math.Abs(x)) }

// AtLeast holds from x upwards.
func AtLeast(x float64) Rule { return Between(x, inf) }

// AtMost holds up to x.
func AtMost(x float64) Rule { return Between(-inf, x) }

// Exactly holds for x alone.
func Exactly(x float64) Rule { return Between(x, x) }

// Above holds for more than x. Above(1) of a ratio with a noise floor is "more, beyond noise".
func Above(x float64) Rule { return Rule{Low: x, Top: inf, Open: true} }

// Below holds for less than x.
func Below(x float64) Rule { return Rule{Low: -inf, Top: x, Open: true} }

// Outside holds below low and above top: Outside(0.9, 1.1) is a difference of more
// than 10 %, either way.
func Outside(low, top float64) Rule { return Rule{Low: low, Top: top, Open: true, Outside: true} }

// Contains reports whether x satisfies the rule.
func (r Rule) Contains(x float64) bool { return !math.IsNaN(x) && r.decide(x, x, 0) == Holds }

// bare reports whether the range is without its bounds. What satisfies a rule that holds
// outside is the rest, so there it is the other way round.
func (r Rule) bare() bool { return r.Open != r.Outside }

// side says where x lies: -1 under the range, 0 in it, 1 over it.
func (r Rule) side(x float64) int {
	switch {
	case x < r.Low, x == r.Low && r.bare():
		return -1
	case x > r.Top, x == r.Top && r.bare():
		return 1
	}
	return 0
}

// shrunk is the rule with a range that is smaller by the margin at each bound.
func (r Rule) shrunk(margin float64) Rule {
	r.Low, r.Top = r.Low+margin, r.Top-margin
	return r
}

// decide compares an interval with the rule. For either verdict the interval must be
// clear of the bounds by the margin.
func (r Rule) decide(low, high, margin float64) Verdict {
	inner, outer := r.shrunk(margin), r.shrunk(-margin)
	inside := inner.side(low) == 0 && inner.side(high) == 0
	outside := outer.side(low) != 0 && outer.side(low) == outer.side(high)
	switch {
	case inside && !r.Outside, outside && r.Outside:
		return Holds
	case inside, outside:
		return Fails
	}
	return Inconclusive
}

// on is the rule on the scale of the question's figure, without the bounds that the
// figure cannot cross: of a share that is 100 % at most, 100 % is no edge.
func (r Rule) on(q Question) Rule {
	if q.Min < q.Max && (r.Low < q.Min || r.Low == q.Min && !r.bare()) {
		r.Low = -inf
	}
	if q.Min < q.Max && (r.Top > q.Max || r.Top == q.Max && !r.bare()) {
		r.Top = inf
	}
	if q.Ratio {
		r.Low, r.Top = math.Log(max(0, r.Low)), math.Log(max(0, r.Top))
	}
	return r
}

// Words writes the rule from its numbers: "4–5x", "at least 100x", "outside 0.9–1.1x".
func (r Rule) Words(unit string) string {
	low, top := numbers.Bound(r.Low)+inUnit(unit), numbers.Bound(r.Top)+inUnit(unit)
	noLow, noTop := math.IsInf(r.Low, -1), math.IsInf(r.Top, 1)
	switch {
	case r.Outside:
		words := Rule{Low: r.Low, Top: r.Top, Open: r.bare()}.Words(unit)
		if startsWithLetter(words) {
			return "not " + words
		}
		return "outside " + words
	case noLow && noTop:
		return "any value"
	case noTop && r.Open:
		return "above " + low
	case noTop:
		return "at least " + low
	case noLow && r.Open:
		return "below " + top
	case noLow:
		return "at most " + top
	case r.Open:
		return "above " + low + " and below " + top
	case r.Low == r.Top:
		return "exactly " + top
	case r.Low < 0:
		return numbers.Bound(r.Low) + " to " + top
	}
	return numbers.Bound(r.Low) + "–" + top
}

func startsWithLetter(s string) bool { return s[0] >= 'a' && s[0] <= 'z' }

// inUnit is the unit as it follows a number.
func inUnit(unit string) string {
	if unit == "x" || unit == "" {
		return unit
	}
	return " " + unit
}

// MarshalJSON writes {"low":4,"top":5}. JSON has no infinity: an absent bound is none.
func (r Rule) MarshalJSON() ([]byte, error) {
	out := map[string]any{"low": r.Low, "top": r.Top, "open": r.Open, "outside": r.Outside}
	none := map[string]any{"low": -inf, "top": inf, "open": false, "outside": false}
	maps.DeleteFunc(out, func(name string, x any) bool { return x == none[name] })
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Rule) UnmarshalJSON(data []byte) error {
	type plain Rule // without methods; its names are matched without regard to case
	in := plain{Low: -inf, Top: inf}
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("a rule is an object like {\"low\": 4, \"top\": 5}: %w", err)
	}
	*r = Rule(in)
	return nil
}

// All is the verdict of a claim that needs every part: it fails with any part
// that fails, and holds when all hold.
func All(parts ...Verdict) Verdict { return combine(parts, Fails, Holds) }

// Any is the verdict of a claim that needs one part: it holds with any part
// that holds, and fails when all fail.
func Any(parts ...Verdict) Verdict { return combine(parts, Holds, Fails) }

// combine returns decisive if any part is that, unanimous if all are, and otherwise
// the first other verdict.
func combine(parts []Verdict, decisive, unanimous Verdict) Verdict {
	if len(parts) == 0 {
		return Inconclusive
	}
	if slices.Contains(parts, decisive) {
		return decisive
	}
	other := slices.IndexFunc(parts, func(v Verdict) bool { return v != unanimous })
	return parts[max(0, other)]
}

// Holm reports which of several verdicts stand, so that at most the share miss of such sets has a
// wrong one among the verdicts that stand: the least chance must be below miss divided by the
// number of verdicts, the next one below miss divided by one less, and so on (Scandinavian Journal
// of Statistics 6, 1979). of is the number of verdicts that were possible.
func Holm(chances []float64, of int, miss float64) []bool {
	out := make([]bool, len(chances))
	order := make([]int, len(chances))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(chances[a], chances[b]) })
	for k, i := range order {
		if chances[i]*float64(max(of-k, 1)) > miss*(1+1e-9) {
			break
		}
		out[i] = true
	}
	return out
}
