package oldjudge

import (
	"math"
	"slices"

	"github.com/spillway-go/spillway/lab/results"
)

// Figure is how the repeats become one number.
type Figure uint8

const (
	Mean       Figure = iota // the mean of the values
	Ratio                    // the geometric mean of a/b; all values must be positive
	Difference               // the mean of a−b
	Peak                     // the largest value: counted, so without an interval
)

// Question is the question that the measurements answer.
type Question struct {
	Subject string // what was measured, as the subject of a sentence: "naive/pool throughput"
	Unit    string // "x" for ratios, "%", "req/s", "KB", …; shares are given and reported in per cent
	Figure  Figure
	Rule    Rule
}

// Pair is two runs of one repeat.
type Pair struct{ A, B float64 }

// Input is what was measured: Values for Mean and Peak, Pairs for Ratio and
// Difference, one for each repeat.
type Input struct {
	Values  []float64
	Pairs   []Pair
	AA      []Pair // the same contestant twice in a repeat; needed only by rules about noise
	Seed    uint64 // of the bootstrap
	Missing string // why there is nothing to judge, as a sentence; the answer is then inconclusive
}

// Answer is the verdict and what it rests on, in the question's unit.
type Answer struct {
	Verdict    results.Verdict
	Measured   float64
	Low, High  float64 // the 95 % interval; both Measured for a Peak; all 0 if there were too few repeats
	NoiseFloor float64 // A/A difference; of a ratio, its distance from 1; 0 if the rule does not use it
	Runs       int     // repeats
	MoreRuns   int     // with Inconclusive: further repeats that would settle it; 0 if more would not help
	Why        string  // one plain sentence
}

// Judge answers the question. It is deterministic: the same input, seed
// included, gives the same answer. Values that cannot be judged (too few, not
// finite, a ratio to zero) make the answer inconclusive and are named in Why.
func Judge(q Question, in Input) Answer {
	xs := in.figures(q.Figure)
	ans := Answer{Verdict: results.Inconclusive, Runs: len(xs)}
	aa := q.differences(in.AA)
	switch {
	case in.Missing != "":
		ans.Why = in.Missing
		return ans
	case len(xs) < MinRepeats:
		ans.MoreRuns = MinRepeats - len(xs)
		ans.Why = q.tooFew(len(xs), "repeats")
		return ans
	case !finite(xs):
		ans.Why = q.unusable()
		return ans
	case q.Rule.usesNoise() && len(aa) < MinRepeats:
		ans.MoreRuns = MinRepeats - len(aa)
		ans.Why = q.tooFew(len(aa), "A/A repeats")
		return ans
	case q.Rule.usesNoise() && !finite(aa):
		ans.Why = q.unusable()
		return ans
	}

	if q.Figure == Peak {
		peak := slices.Max(xs)
		ans.Measured, ans.Low, ans.High = peak, peak, peak
		ans.Verdict = q.Rule.decide(peak, peak, 0)
		ans.Why = q.why(ans)
		return ans
	}

	rule, floor := q.Rule, 0.0
	if q.Figure == Ratio {
		rule = rule.logs()
	}
	if rule.usesNoise() {
		floor = noiseFloor(aa)
	}
	mean, low, high := estimate(xs, in.Seed)
	ans.Verdict = rule.decide(low, high, floor)
	if ans.Verdict == results.Inconclusive {
		ans.MoreRuns = runsToSettle(xs, rule.room(mean, floor))
	}
	ans.Measured, ans.Low, ans.High, ans.NoiseFloor = mean, low, high, floor
	if q.Figure == Ratio {
		ans.Measured, ans.Low, ans.High = math.Exp(mean), math.Exp(low), math.Exp(high)
		ans.NoiseFloor = math.Expm1(floor)
	}
	ans.Why = q.why(ans)
	return ans
}

// figures returns one number for each repeat, on the scale it is averaged on.
func (in Input) figures(f Figure) []float64 {
	switch f {
	case Ratio, Difference:
		return Question{Figure: f}.differences(in.Pairs)
	}
	return in.Values
}

// differences returns a−b of each pair, or for a ratio log(a/b), which is not
// finite unless both are positive.
func (q Question) differences(pairs []Pair) []float64 {
	out := make([]float64, len(pairs))
	for i, p := range pairs {
		switch {
		case q.Figure != Ratio:
			out[i] = p.A - p.B
		case p.A > 0 && p.B > 0:
			out[i] = math.Log(p.A / p.B)
		default:
			out[i] = math.NaN()
		}
	}
	return out
}

func finite(xs []float64) bool {
	return !slices.ContainsFunc(xs, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
}
