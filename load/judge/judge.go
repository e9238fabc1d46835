package judge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// MinRepeats is the fewest repeats that give a verdict by [Every] and [Never], and by [Median] where the
// values are the same in each repeat and have no noise floor, as those of an exact count. Every other
// verdict on a median takes [LeastFollow].
const MinRepeats = 5

// Verdict is the answer to a claim.
type Verdict string

// The four verdicts of the claims ledger.
const (
	Holds         Verdict = "holds"
	Fails         Verdict = "fails"
	Inconclusive  Verdict = "inconclusive"
	NeedsHardware Verdict = "needs hardware"
)

// Kind is how the repeats become one verdict.
type Kind uint8

const (
	// Median judges the median over the repeats by its interval.
	Median Kind = iota
	// Every judges each repeat on its own: it holds if all satisfy the rule, fails if
	// none does, and is inconclusive otherwise. For yes and no, and for bounds.
	Every
	// Never is for invariants: one repeat that violates the rule is a failure, even if
	// others are missing, and at least MinRepeats without one make it hold.
	Never
)

// Question is the question that the measurements answer.
type Question struct {
	Subject  string // what was measured, as the subject of a sentence: "naive/workerpool throughput"
	Unit     string // "x" for ratios, "%", "req/s", …
	Kind     Kind
	Ratio    bool    // the values are ratios: all positive, compared on the log scale
	Rule     Rule    // of ratios too in plain numbers: Between(4, 5)
	Spread   float64 // how far a result moves between sessions: a share for ratios (0.03), else in Unit
	Min, Max float64 // what the figure can be at all, if Min < Max; a value outside of it counts as missing
}

// Input is what was measured.
type Input struct {
	Values    []float64 // one for each repeat, in the order of the repeats; NaN where the value is missing
	Floor     []float64 // A/A: what the figure differs from itself in each repeat, for ratios in logarithms; empty for exact counts
	Looks     int       // earlier looks at this session, before the session was resumed, that had MinRepeats or more
	Disturbed []int     // repeats, indices into Values, that other processes disturbed
	Missing   string    // why there is no figure, as a sentence
	Seed      uint64    // of the simulation behind MoreRuns
	hasty     bool      // leave MoreRuns out: the self-test needs only verdicts
}

// Answer is the verdict and what the verdict rests on, in the question's unit.
type Answer struct {
	Verdict   Verdict
	Measured  float64 // the median; of Never the value that comes closest to a violation or goes furthest; NaN: there is none, which is not 0
	Low, High float64 // the median's interval; of the other kinds the range of the values; NaN: there is none
	Floor     float64 // the margin that was asked for: of the A/A differences or the spread, whichever is larger; of ratios its distance from 1
	Follow    float64 // lag-1 correlation of the repeats; see Follow
	Chance    float64 // probability that a figure at the nearest bound gets this verdict, if the verdict is decisive
	Repeats   int     // with a value
	MoreRuns  int     // further repeats that would settle the question; 0 if more would not help
	Few       bool    // fewer repeats than any verdict on such a question takes, so that this was no look
	AtEdge    bool    // inconclusive because the figure lies so near to a bound
	Void      bool    // inconclusive because a contestant differs from itself
	Why       string  // one plain sentence
}

// court is a question with its evidence.
type court struct {
	Question
	Input
	order  []float64 // the values that there are, in the order of the repeats
	rule   Rule      // on the scale of the question, as the margins are
	spread float64   // what the interval keeps from a bound

	// Set by weigh.
	values []float64 // sorted

	// The interval and the figure are in the unit of the question, the rest is on the scale
	// on which the question is decided.
	low, mid, high  float64
	follow          float64 // lag-1 correlation of the repeats
	enough          bool    // there is an interval
	inflation       float64 // see inflated
	ownLow, ownHigh float64 // the interval of what a contestant differs from itself
	floor           float64 // what the figure keeps from a bound
	biased          bool    // a contestant clearly differs from itself
}

// margin is the larger of the two, which words and answers name.
func (c *court) margin() float64 { return max(c.floor, c.spread) }

// Judge answers the question. The same input, seed included, gives the same answer.
func Judge(q Question, in Input) Answer {
	values := slices.DeleteFunc(slices.Clone(in.Values), func(x float64) bool { return !q.possible(x) })
	in.Looks = max(0, in.Looks)
	c := court{Question: q, Input: in, order: values, rule: q.Rule.on(q), spread: q.Spread}
	need := MinRepeats
	if q.Ratio {
		c.spread = math.Log1p(c.spread)
	}
	c.weigh()
	if q.Kind == Median {
		need += in.Looks // one repeat more halves the error, as each look must
		if len(in.Floor) > 0 || len(values) > 0 && c.values[0] != c.values[len(values)-1] {
			need = max(need, LeastFollow)
		}
	}
	ans := Answer{Verdict: Inconclusive, Measured: c.mid, Low: math.NaN(), High: math.NaN(), Floor: c.margin(), Follow: c.follow, Repeats: len(values), Few: c.few()}
	if q.Ratio {
		ans.Floor = math.Expm1(ans.Floor)
	}
	if !finite(ans.Floor) { // a twin measured 0
		ans.Floor = math.NaN()
	}
	missing, because := len(in.Values)-len(values), ""
	if i := slices.IndexFunc(in.Values, func(x float64) bool { return !math.IsNaN(x) && !q.possible(x) }); i >= 0 {
		because = fmt.Sprintf(": %.4g is no value that it can have", in.Values[i])
	}
	if in.Missing != "" {
		because = ": " + in.Missing
	}
	switch {
	case !q.meaningful():
		ans.Why = c.sentence("cannot be judged: its rule, kind or spread means nothing")
	case q.Kind == Never && c.count(Fails, c.spread) > 0:
		c.each(&ans)
	case missing > 0:
		ans.Why = c.sentence("is missing in %d of %d repeats%s", missing, len(in.Values), because)
	case in.Missing != "":
		ans.Why = c.sentence("is missing%s", because)
	case slices.ContainsFunc(in.Floor, func(x float64) bool { return !finite(x) }):
		ans.Floor = math.NaN()
		ans.Why = c.sentence("has no noise floor, because what it differs from itself is missing in a repeat; it needs a session in which its twin is measured every time")
	case len(values) < need:
		ans.MoreRuns = need - len(values)
		if q.Kind == Median && c.enough {
			ans.Low, ans.High = c.low, c.high
		}
		ans.Why = c.sentence("has %d of the %d repeats that a verdict needs; it needs %d more", len(values), need, ans.MoreRuns)
	case q.Kind == Median:
		c.median(&ans)
	default:
		c.each(&ans)
	}
	return ans
}

// few reports whether nothing could have been decided with so many repeats, whatever their values.
func (c *court) few() bool {
	if c.Kind == Median && len(c.Floor) > 0 {
		return len(c.order) < LeastFollow
	}
	return len(c.order) < MinRepeats
}

// meaningful reports whether there is anything to decide.
func (q Question) meaningful() bool {
	return q.Rule.Low <= q.Rule.Top && q.Kind <= Never && q.Spread >= 0 // NaN is not
}

// possible reports whether x can be a value at all. One that cannot is a missing one.
func (q Question) possible(x float64) bool {
	return finite(x) && (!q.Ratio || x > 0) && (q.Min >= q.Max || q.Min <= x && x <= q.Max)
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// scaled is x on the scale on which the question is decided.
func (q Question) scaled(x float64) float64 {
	if q.Ratio {
		return math.Log(x)
	}
	return x
}

// weigh computes what the verdict rests on from the values and the A/A differences.
func (c *court) weigh() {
	miss := errorOf(c.Looks)
	c.values, c.follow = slices.Sorted(slices.Values(c.order)), Follow(c.order)
	c.mid, c.inflation = c.middle(c.values), inflated(len(c.values), c.follow)
	c.low, c.high, c.enough = c.dependent(c.values, miss, c.inflation)
	own := slices.Sorted(slices.Values(c.Floor))
	var enough bool
	if c.ownLow, c.ownHigh, enough = (Question{}).dependent(own, miss, inflated(len(own), Follow(c.Floor))); !enough && len(own) > 0 {
		c.ownLow, c.ownHigh = own[0], own[len(own)-1]
	}
	c.floor = 0
	if len(own) > 0 {
		c.floor = max(math.Abs(c.ownLow), math.Abs(c.ownHigh))
	}
	bias := max(c.ownLow, -c.ownHigh)
	c.biased = enough && bias > 0 && bias >= material*c.clear()
}

// material is the part of the way from the figure to the nearest bound from which on a bias of the
// instrument makes a comparison void.
const material = 0.2

// clear is how far the figure is from the nearest bound.
func (c *court) clear() float64 {
	mid := c.scaled(c.mid)
	return min(math.Abs(mid-c.rule.Low), math.Abs(mid-c.rule.Top))
}

// verdict is what the present weights say.
func (c *court) verdict() Verdict {
	if !c.enough || c.biased {
		return Inconclusive
	}
	mid := c.scaled(c.mid)
	if v := c.rule.decide(c.scaled(c.low), c.scaled(c.high), c.spread); v == c.rule.decide(mid, mid, c.floor) {
		return v
	}
	return Inconclusive
}

// chanceOf is the least share of wrong verdicts on one side, at which the verdict still stands.
func (c *court) chanceOf(v Verdict) float64 {
	stands := func(miss float64) bool {
		low, high, ok := c.dependent(c.values, miss, c.inflation)
		return ok && c.rule.decide(c.scaled(low), c.scaled(high), c.spread) == v
	}
	least, most := math.Ldexp(1, 1-len(c.values)), errorOf(c.Looks)
	if stands(least) {
		return least / 2
	}
	for range 20 {
		if mid := math.Sqrt(least * most); stands(mid) {
			most = mid
		} else {
			least = mid
		}
	}
	return most / 2
}

// median decides by the interval of the median, clear of the bounds by what sessions differ, and
// by the median itself, clear of the bounds by what a contestant differs from itself.
func (c *court) median(ans *Answer) {
	ans.Low, ans.High, ans.Verdict = c.low, c.high, c.verdict()
	low, mid, high := c.scaled(c.low), c.scaled(c.mid), c.scaled(c.high)
	switch {
	case c.biased:
		ans.Void = true
		if c.Looks == 0 { // chance makes one in sixteen
			ans.MoreRuns = len(c.values)
		}
	case ans.Verdict == Inconclusive:
		ans.AtEdge = c.rule.decide(low, high, 0) != Inconclusive || c.rule.decide(mid, mid, c.margin()) == Inconclusive
		if !c.hasty {
			ans.MoreRuns = c.more()
		}
	default:
		ans.Chance = c.chanceOf(ans.Verdict)
	}
	ans.Why = c.why(*ans, 0)
}

// each decides by the repeats one by one.
func (c *court) each(ans *Answer) {
	n, satisfied := len(c.values), c.count(Holds, 0)
	ans.Low, ans.High = c.values[0], c.values[n-1]
	switch fail := c.count(Fails, c.spread); {
	case c.count(Holds, c.spread) == n:
		ans.Verdict, ans.Chance = Holds, math.Ldexp(1, -n)
	case fail == n, fail > 0 && c.Kind == Never:
		ans.Verdict = Fails
		if c.Kind == Every {
			ans.Chance = math.Ldexp(1, -n)
		}
	default: // a Never that is here violates the rule by no more than the spread
		ans.AtEdge = satisfied == n || satisfied == 0 || c.Kind == Never
	}
	if c.Kind == Never {
		ans.Measured = slices.MinFunc(c.values, func(a, b float64) int { return cmp.Compare(c.clearance(a), c.clearance(b)) })
	}
	ans.Why = c.why(*ans, satisfied)
}

// count is how many values have that verdict on their own.
func (c *court) count(v Verdict, margin float64) (n int) {
	for _, x := range c.values {
		if x = c.scaled(x); c.rule.decide(x, x, margin) == v {
			n++
		}
	}
	return n
}

// clearance is how far x is on the right side of the nearest bound.
func (c *court) clearance(x float64) float64 {
	inside := min(c.scaled(x)-c.rule.Low, c.rule.Top-c.scaled(x))
	if c.rule.Outside {
		return -inside
	}
	return inside
}
