package judge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// MinRepeats is the fewest repeats that give a verdict.
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
	Values    []float64 // one for each repeat; NaN where it is missing
	Floor     []float64 // A/A: what the figure differs from itself in each repeat, for ratios in logarithms; empty for exact counts
	Looks     int       // earlier looks at this session, before it was resumed, that had MinRepeats or more
	Disturbed []int     // repeats, indices into Values, that other processes disturbed
	Missing   string    // why there is no figure, as a sentence
	Seed      uint64    // of the simulation behind MoreRuns
	hasty     bool      // leave MoreRuns out: the self-test needs only verdicts
}

// Answer is the verdict and what it rests on, in the question's unit.
type Answer struct {
	Verdict   Verdict
	Measured  float64 // the median; of Never the value that comes closest to a violation or goes furthest; NaN: there is none, which is not 0
	Low, High float64 // the median's interval; of the other kinds the range of the values; NaN: there is none
	Floor     float64 // the margin that was asked for: A/A floor or spread, whichever is larger; of ratios its distance from 1
	Repeats   int     // with a value
	MoreRuns  int     // further repeats that would settle it; 0 if more would not help
	AtEdge    bool    // inconclusive because the figure lies so near to a bound
	Why       string  // one plain sentence
}

// court is a question with its evidence.
type court struct {
	Question
	Input
	values []float64 // sorted
	rule   Rule      // on the scale of the question, as the margins are

	spread, floor float64 // what the interval and the median keep from a bound
}

// margin is the larger of the two, which words and answers name.
func (c *court) margin() float64 { return max(c.floor, c.spread) }

// Judge answers the question. The same input, seed included, gives the same answer.
func Judge(q Question, in Input) Answer {
	values := slices.DeleteFunc(slices.Clone(in.Values), func(x float64) bool { return !q.possible(x) })
	slices.Sort(values)
	floor, spread, need := noiseFloor(in.Floor), q.Spread, MinRepeats
	if q.Ratio {
		spread = math.Log1p(spread)
	}
	in.Looks = max(0, in.Looks)
	if q.Kind == Median { // one repeat more halves the error, as each look must
		need += in.Looks
	}
	c := court{Question: q, Input: in, values: values, rule: q.Rule.on(q), spread: spread, floor: floor}
	ans := Answer{Verdict: Inconclusive, Measured: q.middle(values), Low: math.NaN(), High: math.NaN(), Floor: c.margin(), Repeats: len(values)}
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
		ans.Why = c.sentence("has %d of the %d repeats that a verdict needs; it needs %d more", len(values), need, ans.MoreRuns)
	case q.Kind == Median:
		c.median(&ans)
	default:
		c.each(&ans)
	}
	return ans
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

// median decides by the interval of the median, clear of the bounds by what sessions
// differ, and by the median itself, clear of them by what a contestant differs from itself.
func (c *court) median(ans *Answer) {
	k := tail(len(c.values), c.Looks)
	ans.Low, ans.High = c.values[k], c.values[len(c.values)-1-k]
	low, mid, high := c.scaled(ans.Low), c.scaled(ans.Measured), c.scaled(ans.High)
	if v := c.rule.decide(low, high, c.spread); v == c.rule.decide(mid, mid, c.floor) {
		ans.Verdict = v
	}
	if ans.Verdict == Inconclusive {
		ans.AtEdge = c.rule.decide(low, high, 0) != Inconclusive || c.rule.decide(mid, mid, c.margin()) == Inconclusive
		if !c.hasty {
			ans.MoreRuns = c.moreRuns()
		}
	}
	ans.Why = c.why(*ans, 0)
}

// each decides by the repeats one by one.
func (c *court) each(ans *Answer) {
	n, satisfied := len(c.values), c.count(Holds, 0)
	ans.Low, ans.High = c.values[0], c.values[n-1]
	switch fail := c.count(Fails, c.spread); {
	case c.count(Holds, c.spread) == n:
		ans.Verdict = Holds
	case fail == n, fail > 0 && c.Kind == Never:
		ans.Verdict = Fails
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
