package judge

import (
	"cmp"
	"math"
	"slices"
)

// MinRepeats is the fewest repeats that give a verdict.
const MinRepeats = 5

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
	Min, Max float64 // what the figure can be at all, if Min < Max; a value outside of it is an error
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

// Judge answers the question. The same input, seed included, gives the same answer.
func Judge(q Question, in Input) Answer {
	values := slices.DeleteFunc(slices.Clone(in.Values), func(x float64) bool { return !q.possible(x) })
	slices.Sort(values)
	c := newCourt(q, in, values)
	ans := Answer{
		Verdict: Inconclusive, Measured: q.middle(values), Low: math.NaN(), High: math.NaN(),
		Floor: c.margin, Repeats: len(values),
	}
	if q.Ratio {
		ans.Floor = math.Expm1(c.margin)
	}
	need := MinRepeats
	if q.Kind == Median {
		need = needed(in.Looks)
	}
	proven := q.Kind == Never && c.count(Fails) > 0
	switch {
	case proven:
		c.each(&ans)
	case in.Missing != "" || len(values) < len(in.Values):
		ans.Why = c.missing()
	case slices.ContainsFunc(in.Floor, func(x float64) bool { return !finite(x) }):
		ans.Floor = math.NaN()
		ans.Why = c.noFloor()
	case len(values) < need:
		ans.MoreRuns = need - len(values)
		ans.Why = c.tooFew(need)
	case q.Kind == Median:
		c.median(&ans)
	default:
		c.each(&ans)
	}
	return ans
}

// possible reports whether x can be a value at all; another one is a missing one.
func (q Question) possible(x float64) bool {
	return finite(x) && (!q.Ratio || x > 0) && (q.Min >= q.Max || q.Min <= x && x <= q.Max)
}

// scaled is x on the scale on which the question is decided.
func (q Question) scaled(x float64) float64 {
	if q.Ratio {
		return math.Log(x)
	}
	return x
}

// court is one question with its evidence.
type court struct {
	q       Question
	in      Input
	values  []float64 // sorted
	rule    Rule      // on the scale of the question, as the margin is
	margin  float64
	byFloor bool // the margin is the A/A floor
}

func newCourt(q Question, in Input, values []float64) *court {
	floor, spread := noiseFloor(in.Floor), q.Spread
	if q.Ratio {
		spread = math.Log1p(spread)
	}
	return &court{q: q, in: in, values: values, rule: q.Rule.on(q), margin: max(floor, spread), byFloor: floor >= spread}
}

// median decides by the interval of the median.
func (c *court) median(ans *Answer) {
	k := tail(len(c.values), c.in.Looks)
	ans.Low, ans.High = c.values[k], c.values[len(c.values)-1-k]
	low, mid, high := c.q.scaled(ans.Low), c.q.scaled(ans.Measured), c.q.scaled(ans.High)
	ans.Verdict = c.rule.decide(low, high, c.margin)
	if ans.Verdict == Inconclusive {
		ans.AtEdge = c.rule.decide(low, high, 0) != Inconclusive || c.rule.decide(mid, mid, c.margin) == Inconclusive
		if !c.in.hasty {
			ans.MoreRuns = c.moreRuns()
		}
	}
	ans.Why = c.why(*ans, 0)
}

// each decides by the repeats one by one.
func (c *court) each(ans *Answer) {
	n := len(c.values)
	ans.Low, ans.High = c.values[0], c.values[n-1]
	hold, fail := c.count(Holds), c.count(Fails)
	satisfied := c.satisfied()
	switch {
	case hold == n:
		ans.Verdict = Holds
	case fail == n, fail > 0 && c.q.Kind == Never:
		ans.Verdict = Fails
	default: // a Never that is here violates the rule by no more than the margin
		ans.AtEdge = satisfied == n || satisfied == 0 || c.q.Kind == Never
	}
	if c.q.Kind == Never {
		ans.Measured = slices.MinFunc(c.values, func(a, b float64) int { return cmp.Compare(c.clearance(a), c.clearance(b)) })
	}
	ans.Why = c.why(*ans, satisfied)
}

// count is how many values have that verdict on their own.
func (c *court) count(v Verdict) (n int) {
	for _, x := range c.values {
		if x = c.q.scaled(x); c.rule.decide(x, x, c.margin) == v {
			n++
		}
	}
	return n
}

// satisfied is how many values satisfy the rule, by however little.
func (c *court) satisfied() (n int) {
	for _, x := range c.values {
		if c.q.Rule.Contains(x) {
			n++
		}
	}
	return n
}

// clearance is how far x is on the right side of the nearest bound.
func (c *court) clearance(x float64) float64 {
	x = c.q.scaled(x)
	inside := min(x-c.rule.Low, c.rule.Top-x)
	if c.rule.Outside {
		return -inside
	}
	return inside
}
