package oldjudge

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// coverage is how often the interval of n draws contains their true mean.
func coverage(n int, truth float64, draw func(*rand.Rand) float64) float64 {
	const experiments = 200
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	covered := 0
	xs := make([]float64, n)
	for i := range experiments {
		for j := range xs {
			xs[j] = draw(rng)
		}
		if _, low, high := estimate(xs, uint64(i)); low <= truth && truth <= high {
			covered++
		}
	}
	return float64(covered) / experiments
}

func TestIntervalContainsTheTruthAsOftenAsItSays(t *testing.T) {
	t.Parallel()
	noises := map[string]struct {
		draw  func(*rand.Rand) float64
		truth float64
		least float64 // 200 experiments scatter by 1.5 % around 95 %; uncorrected, three repeats give 75 %
	}{
		"normal":       {(*rand.Rand).NormFloat64, 0, 0.90},
		"heavy-tailed": {heavyTailed, 0, 0.90},
		// The package comment mentions this case.
		"exponential": {(*rand.Rand).ExpFloat64, 1, 0.83},
	}
	for name, noise := range noises {
		for _, n := range []int{3, 10} {
			if got := coverage(n, noise.truth, noise.draw); got < noise.least || got > 0.99 {
				t.Errorf("%s noise, %d repeats: 95 %% interval covers %.1f %%", name, n, 100*got)
			}
		}
	}
}

// everyResample is the slow twin of the bootstrap: all n^n resamples.
func everyResample(xs []float64) (tail, head float64) {
	means := []float64{0}
	for range xs {
		var longer []float64
		for _, sum := range means {
			for _, x := range xs {
				longer = append(longer, sum+x/float64(len(xs)))
			}
		}
		means = longer
	}
	slices.Sort(means)
	cut := len(means) / 40
	return means[cut], means[len(means)-1-cut]
}

func TestBootstrapAgreesWithEveryResample(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 3; n <= 6; n++ {
		for range 10 {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = rng.NormFloat64()
			}
			tail, head := everyResample(xs)
			mean, low, high := estimate(xs, rng.Uint64())
			stretch := studentQuantile(0.975, n-1) / normal975 * math.Sqrt(float64(n)/float64(n-1))
			tolerance := 0.1 * (high - low)
			if math.Abs(low-(mean-stretch*(mean-tail))) > tolerance || math.Abs(high-(mean+stretch*(head-mean))) > tolerance {
				t.Errorf("%v: interval %v to %v, all resamples %v to %v around %v", xs, low, high, tail, head, mean)
			}
		}
	}
}

func TestIntervalKeepsLopsidednessAndOrder(t *testing.T) {
	mean, low, high := estimate([]float64{10, 10.1, 10.2, 14}, 1)
	if !(low < mean && mean < high) || high-mean <= mean-low {
		t.Errorf("an outlier above must stretch the interval upwards: %v < %v < %v", low, mean, high)
	}
}

func TestExactCountsHaveNoWidth(t *testing.T) {
	if mean, low, high := estimate([]float64{0.1, 0.1, 0.1}, 1); mean != 0.1 || low != 0.1 || high != 0.1 {
		t.Errorf("three times 0.1 gave %v, %v to %v", mean, low, high)
	}
}

func TestNoiseFloorIsTheLargestOfFewAndShrugsOffOneOfMany(t *testing.T) {
	if got := noiseFloor([]float64{0.01, -0.04, 0.02}); got != 0.04 {
		t.Errorf("floor of three = %v, want the largest, 0.04", got)
	}
	many := make([]float64, 20)
	for i := range many {
		many[i] = 0.01
	}
	many[7] = -3
	if got := noiseFloor(many); got != 0.01 {
		t.Errorf("floor of twenty with one bad run = %v, want 0.01", got)
	}
}

// The advice must be right on average: that many more repeats give the width, one
// fewer does not.
func TestRunsToSettleIsTheFirstThatSuffices(t *testing.T) {
	xs := []float64{9, 10, 11} // deviation 1
	width := func(n int) float64 { return studentQuantile(0.975, n-1) / math.Sqrt(float64(n)) }
	for _, distance := range []float64{0.2, 0.5, 1, 2} {
		more := runsToSettle(xs, distance)
		if more < 1 || width(3+more) >= distance || more > 1 && width(3+more-1) < distance {
			t.Errorf("distance %v: %d more runs", distance, more)
		}
	}
	for _, hopeless := range []float64{0, 0.01} {
		if more := runsToSettle(xs, hopeless); more != 0 {
			t.Errorf("distance %v: %d more runs, want 0", hopeless, more)
		}
	}
}
