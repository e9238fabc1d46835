package judge

import (
	"math"
	"math/rand/v2"
)

const (
	mostMoreRuns = 200 // more than that is no advice
	futures      = 400 // simulated continuations of the session
	sureEnough   = futures * 95 / 100
)

// moreRuns is the fewest further repeats after which 95 % of the continuations are settled,
// at the next look; 0 if even mostMoreRuns are too few. Each continuation draws a mean and
// a deviation from what the values leave open, which is Student's t for the mean, and goes
// on with normal values.
func (c *court) moreRuns() int {
	n, mean, squares := float64(len(c.values)), 0.0, 0.0
	for _, x := range c.values {
		mean += c.q.scaled(x) / n
	}
	present := tally{inner: c.rule.shrunk(c.margin), outer: c.rule.shrunk(-c.margin)}
	for _, x := range c.values {
		x = c.q.scaled(x)
		squares += (x - mean) * (x - mean)
		present.add(x)
	}
	lowest, highest := math.Inf(-1), math.Inf(1)
	if c.q.Min < c.q.Max {
		lowest, highest = c.q.scaled(c.q.Min), c.q.scaled(c.q.Max)
	}
	rng := rand.New(rand.NewPCG(c.in.Seed, uint64(len(c.values))))
	var all [futures]struct {
		tally
		mean, deviation float64
	}
	for i := range all {
		chi := 0.0
		for range len(c.values) - 1 {
			z := rng.NormFloat64()
			chi += z * z
		}
		deviation := math.Sqrt(squares / chi)
		all[i].tally, all[i].deviation = present, deviation
		all[i].mean = mean + deviation/math.Sqrt(n)*rng.NormFloat64()
	}
	for more := 1; more <= mostMoreRuns; more++ {
		settled, k := 0, tail(len(c.values)+more, c.in.Looks+1)
		for i := range all {
			f := &all[i]
			f.add(min(max(f.mean+f.deviation*rng.NormFloat64(), lowest), highest))
			if f.settled(k) {
				settled++
			}
		}
		if settled >= sureEnough {
			return more
		}
	}
	return 0
}

// tally counts the values under and over the range that decides for a rule and the one
// that decides against it. That is enough to know where an order statistic lies.
type tally struct {
	inner, outer                                    Rule
	n, underInner, overInner, underOuter, overOuter int
}

func (t *tally) add(x float64) {
	t.n++
	switch t.inner.side(x) {
	case -1:
		t.underInner++
	case 1:
		t.overInner++
	}
	switch t.outer.side(x) {
	case -1:
		t.underOuter++
	case 1:
		t.overOuter++
	}
}

// settled reports whether [Rule.decide] decides on the interval without k values at
// either end.
func (t *tally) settled(k int) bool {
	return t.underInner <= k && t.overInner <= k || t.n-t.underOuter <= k || t.n-t.overOuter <= k
}
