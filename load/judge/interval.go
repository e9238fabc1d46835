package judge

import (
	"math"
	"slices"
)

// errorOf is the share of intervals that may miss the median at a look. Each look halves the
// share, so that the shares of all looks sum up to an eighth at most.
func errorOf(looks int) float64 { return math.Ldexp(1./16, -looks) }

// Miss is the probability of a wrong verdict, at one bound, at a look.
func Miss(looks int) float64 { return errorOf(looks) / 2 }

// tail is the number of values that the interval of the median leaves out at either end: the most
// for which at most the share miss of all intervals misses the median. The number is negative if
// the range of all n values misses the median more often. The second result is that share for the
// number, and the third one for the number plus 1.
//
// The share is 2·P(X ≤ k), where X is the number of values below the median and has the
// distribution Binomial(n, 1/2).
func tail(n int, miss float64) (k int, misses, next float64) {
	// In logarithms, as 2^n overflows. Rounding must not refuse the 1/16 of five values.
	k, term := -1, float64(1-n)*math.Ln2
	for misses, next = 0, math.Exp(term); next <= miss*(1+1e-9); misses, next = next, next+math.Exp(term) {
		k++
		term += math.Log(float64(n-k) / float64(k+1))
	}
	return k, misses, next
}

// interval is the interval of the median of sorted values, of which at most the share miss misses
// the median. The ends are between two values each, by the interpolation of Hettmansperger and
// Sheather (Statistics & Probability Letters 4, 1986). ok is false for too few values.
func (q Question) interval(sorted []float64, miss float64) (low, high float64, ok bool) {
	n := len(sorted)
	k, misses, next := tail(n, miss)
	if k < 0 {
		return math.NaN(), math.NaN(), false
	}
	d, part := k+1, 0.
	if 2*d < n && next > misses && miss > misses {
		part = (miss - misses) / (next - misses)
		part = float64(n-d) * part / (float64(d) + float64(n-2*d)*part)
	}
	return q.between(sorted[d-1], sorted[min(d, n-1)], part), q.between(sorted[n-d], sorted[max(n-d-1, 0)], part), true
}

// dependent is the interval of values whose number below the median varies more than among
// independent ones, by this inflation. Where even the range of all values is too narrow for that,
// its ends are moved away from the median, as far as those of a normal distribution would be.
func (q Question) dependent(sorted []float64, miss, inflation float64) (low, high float64, ok bool) {
	n := len(sorted)
	distance := deviations(miss) * math.Sqrt(inflation)
	if low, high, ok = q.interval(sorted, miss); !ok || inflation == 1 {
		return low, high, ok
	}
	if low, high, ok = q.interval(sorted, math.Erfc(distance)); ok {
		return low, high, ok
	}
	further := distance / deviations(math.Ldexp(1, 1-n))
	mid := q.middle(sorted)
	return q.between(mid, sorted[0], further), q.between(mid, sorted[n-1], further), true
}

// deviations is the distance from the mean, of a normal distribution, beyond which there is that
// share; in units of √2 standard deviations. For small shares, of which math.Erfcinv makes infinity,
// the distance is the first terms of its asymptotic expansion.
func deviations(share float64) float64 {
	if share > 1e-15 {
		return math.Erfcinv(share)
	}
	far := math.Log(2/math.Pi) - 2*math.Log(share)
	return math.Sqrt((far - math.Log(far)) / 2)
}

// between is the value at a part of the way from a to b, on the scale of the question.
func (q Question) between(a, b, part float64) float64 {
	switch {
	case part <= 0 || a == b:
		return a
	case q.Ratio:
		return math.Exp(math.Log(a) + part*(math.Log(b)-math.Log(a)))
	}
	return a + part*(b-a)
}

// middle is the median of sorted values. Of an even number of ratios the middle is the geometric
// mean of the two in the middle.
func (q Question) middle(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	a, b := sorted[(n-1)/2], sorted[n/2]
	if q.Ratio && a != b {
		return math.Sqrt(a) * math.Sqrt(b)
	}
	return a + (b-a)/2
}

// Follow is the lag-1 correlation of values in their order, by ranks: 1 less half of von Neumann's
// ratio, as in Bartels (Journal of the American Statistical Association 77, 1982). The expectation
// is 0 if the values are independent. One value that was disturbed hardly matters. Fewer than
// [MinRepeats] values, or values that are all the same, have a correlation of 0.
func Follow(values []float64) float64 {
	n := len(values)
	if n < MinRepeats {
		return 0
	}
	r := ranks(values)
	steps, squares, mean := 0., 0., float64(n+1)/2
	for i, x := range r {
		squares += (x - mean) * (x - mean)
		if i > 0 {
			steps += (x - r[i-1]) * (x - r[i-1])
		}
	}
	if squares == 0 {
		return 0
	}
	return 1 - steps/squares/2
}

// ranks are the ranks of the values, from 1. Equal values share the mean of their ranks.
func ranks(values []float64) []float64 {
	sorted := slices.Sorted(slices.Values(values))
	out := make([]float64, len(values))
	for i, x := range values {
		first, _ := slices.BinarySearch(sorted, x)
		last := first
		for last < len(sorted) && sorted[last] == x {
			last++
		}
		out[i] = float64(first+last+1) / 2
	}
	return out
}

// LeastFollow is the number of repeats below which a lag-1 correlation says nothing. So no interval of
// fewer repeats decides.
const LeastFollow = 7

// inflated is by how much the number of values below the median varies more than among
// independent values. The correlation is taken to be that of a first-order process, and raised by
// half of what an estimate from so few values is too low by.
func inflated(n int, follow float64) float64 {
	if follow = min(follow+(1+3*follow)/float64(2*n), 0.95); n < LeastFollow || follow <= 0 {
		return 1
	}
	sum, power := 1., 1.
	for k := 1; k < n; k++ {
		power *= follow
		sum += 2 * (1 - float64(k)/float64(n)) * 2 / math.Pi * math.Asin(power)
	}
	return sum
}
