package judge

import (
	"math"
	"math/rand/v2"
	"slices"
)

const (
	mostMoreRuns = 200 // more than that is no advice
	futures      = 400 // simulated continuations
	sureEnough   = futures * 95 / 100
)

// moreRuns is the fewest further repeats after which 95 % of the simulated continuations
// of the session are settled, at the next look; 0 if even mostMoreRuns are too few. Each
// continuation draws a mean and a deviation from what the values leave open, which is
// Student's t, and goes on with normal values.
func (c *court) moreRuns() int {
	n := len(c.values)
	if c.values[0] == c.values[n-1] {
		return 0
	}
	xs := make([]float64, n, n+mostMoreRuns)
	for i, x := range c.values {
		xs[i] = c.q.scaled(x)
	}
	mean, deviation := meanDeviation(xs)
	lowest, highest := math.Inf(-1), math.Inf(1)
	if c.q.Min < c.q.Max {
		lowest, highest = c.q.scaled(max(c.q.Min, 0)), c.q.scaled(c.q.Max)
	}
	rng := rand.New(rand.NewPCG(c.in.Seed, uint64(n)))
	type future struct {
		mean, deviation float64
		sorted          []float64
	}
	all := make([]future, futures)
	for i := range all {
		squares := 0.0
		for range n - 1 {
			z := rng.NormFloat64()
			squares += z * z
		}
		d := deviation * math.Sqrt(float64(n-1)/squares)
		all[i] = future{mean + d/math.Sqrt(float64(n))*rng.NormFloat64(), d, slices.Grow(slices.Clone(xs), mostMoreRuns)}
	}
	for more := 1; more <= mostMoreRuns; more++ {
		settled, k := 0, tail(n+more, c.in.Looks+1)
		for i := range all {
			f := &all[i]
			x := min(max(f.mean+f.deviation*rng.NormFloat64(), lowest), highest)
			at, _ := slices.BinarySearch(f.sorted, x)
			f.sorted = slices.Insert(f.sorted, at, x)
			if k >= 0 && c.rule.decide(f.sorted[k], f.sorted[n+more-1-k], c.margin) != Inconclusive {
				settled++
			}
		}
		if settled >= sureEnough {
			return more
		}
	}
	return 0
}

func meanDeviation(xs []float64) (mean, deviation float64) {
	for _, x := range xs {
		mean += x / float64(len(xs))
	}
	for _, x := range xs {
		deviation += (x - mean) * (x - mean) / float64(len(xs)-1)
	}
	return mean, math.Sqrt(deviation)
}
