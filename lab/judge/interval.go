package judge

import (
	"math"
	"slices"
)

// tail is the number of values that the interval of the median leaves out at either
// end: the most for which the two-sided error is at most 1/16, halved with every
// earlier look. It is negative when even all n values are not enough.
func tail(n, looks int) int {
	level := math.Ldexp(1./16, -looks)
	// The error is 2·P(X ≤ k) for X of Binomial(n, 1/2), the number of values under the
	// median. In logarithms, as 2^n overflows; rounding must not refuse the 1/16 of five.
	k, term := -1, float64(1-n)*math.Ln2
	for sum := math.Exp(term); sum <= level*(1+1e-9); sum += math.Exp(term) {
		k++
		term += math.Log(float64(n-k) / float64(k+1))
	}
	return k
}

// needed is the fewest repeats that give an interval at that look.
func needed(looks int) int { return MinRepeats + max(0, looks) }

// middle is the median of sorted values, of an even number of ratios the geometric
// mean of the two in the middle.
func (q Question) middle(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	switch a, b := sorted[(n-1)/2], sorted[n/2]; {
	case a == b:
		return a
	case q.Ratio:
		return math.Sqrt(a) * math.Sqrt(b)
	default:
		return a + (b-a)/2
	}
}

// noiseFloor is the 90th percentile of the absolute differences, by nearest rank.
func noiseFloor(differences []float64) float64 {
	if len(differences) == 0 {
		return 0
	}
	abs := make([]float64, len(differences))
	for i, d := range differences {
		abs[i] = math.Abs(d)
	}
	slices.Sort(abs)
	return abs[(9*len(abs)+9)/10-1] // ceil(0.9·n), without rounding
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
