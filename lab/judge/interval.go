package judge

import (
	"math"
	"math/rand/v2"
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

// middle is the median of sorted values, of an even number of ratios the geometric
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

// noiseFloor is the 90th percentile of the absolute differences, by nearest rank.
func noiseFloor(differences []float64) float64 {
	abs := []float64{0}
	for _, d := range differences {
		abs = append(abs, math.Abs(d))
	}
	slices.Sort(abs)
	return abs[(9*len(differences)+9)/10] // abs[0] is the 0 that no differences leave
}

const (
	mostMoreRuns = 200 // more than that is no advice
	futures      = 400 // simulated continuations of the session
)

// moreRuns is the fewest further repeats after which 95 % of the continuations are settled,
// at the next look; 0 if even mostMoreRuns are too few. Each continuation draws a mean and
// a deviation from what the values leave open, which is Student's t for the mean, and goes
// on with normal values.
func (c *court) moreRuns() int {
	n := len(c.values)
	if c.values[0] == c.values[n-1] {
		return 0
	}
	// An order statistic lies in a range if few enough values lie beside it, so it is
	// enough to count the sides of the ranges that decide for and against: two for the
	// ends of the interval, two for the median.
	type tally [4]sides
	ranges := [4]Rule{c.rule.shrunk(c.spread), c.rule.shrunk(-c.spread), c.rule.shrunk(c.floor), c.rule.shrunk(-c.floor)}
	add := func(t *tally, x float64) {
		for i, r := range ranges {
			t[i][1+r.side(x)]++
		}
	}
	var present tally
	mean, squares, lowest, highest := 0.0, 0.0, -inf, inf
	for _, x := range c.values {
		mean += c.scaled(x) / float64(n)
		add(&present, c.scaled(x))
	}
	for _, x := range c.values {
		squares += (c.scaled(x) - mean) * (c.scaled(x) - mean)
	}
	if c.Min < c.Max {
		lowest, highest = c.scaled(c.Min), c.scaled(c.Max)
	}
	rng := rand.New(rand.NewPCG(c.Seed, uint64(n)))
	var all [futures]struct {
		tally
		mean, deviation float64
	}
	for i := range all {
		chi := 0.0
		for range n - 1 {
			z := rng.NormFloat64()
			chi += z * z
		}
		all[i].tally, all[i].deviation = present, math.Sqrt(squares/chi)
		all[i].mean = mean + all[i].deviation/math.Sqrt(float64(n))*rng.NormFloat64()
	}
	for more := 1; more <= mostMoreRuns; more++ {
		settled, ends, middle := 0, tail(n+more, c.Looks+1), (n+more-1)/2
		for i := range all {
			f := &all[i]
			add(&f.tally, min(max(f.mean+f.deviation*rng.NormFloat64(), lowest), highest))
			within, beyond, midWithin, midBeyond := f.tally[0], f.tally[1], f.tally[2], f.tally[3]
			if within.in(ends) && midWithin.in(middle) || beyond.over(ends) && midBeyond.over(middle) || beyond.under(ends) && midBeyond.under(middle) {
				settled++
			}
		}
		if settled >= futures*95/100 {
			return more
		}
	}
	return 0
}

// sides are how many values lie under a range, in it and over it.
type sides [3]int

// in, under and over report whether all values lie there but at most so many at either end.
func (s sides) in(but int) bool    { return s[0] <= but && s[2] <= but }
func (s sides) under(but int) bool { return s[1]+s[2] <= but }
func (s sides) over(but int) bool  { return s[0]+s[1] <= but }
