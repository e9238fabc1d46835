package oldjudge

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// MinRepeats is the fewest repeats that give an interval.
const MinRepeats = 3

// resamples is chosen so that at three repeats the 2.5 % point is the smallest
// repeat (it is drawn three times in 1/27 of the resamples) for any seed.
const resamples = 4000

// estimate is the mean of xs with its 95 % interval; see the package comment.
// It needs MinRepeats values.
func estimate(xs []float64, seed uint64) (mean, low, high float64) {
	n := len(xs)
	mean = average(xs)
	if slices.Min(xs) == slices.Max(xs) { // exact: rounding must not add a width
		return xs[0], xs[0], xs[0]
	}
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	means := make([]float64, resamples)
	for i := range means {
		sum := 0.0
		for range n {
			sum += xs[rng.IntN(n)]
		}
		means[i] = sum / float64(n)
	}
	slices.Sort(means)
	const tail = resamples / 40 // 2.5 %
	stretch := studentQuantile(0.975, n-1) / normal975 * math.Sqrt(float64(n)/float64(n-1))
	low = mean - stretch*max(0, mean-means[tail])
	high = mean + stretch*max(0, means[resamples-1-tail]-mean)
	return mean, low, high
}

// noiseFloor is the difference between two runs of the same contestant: the 90th
// percentile of the absolute differences, by nearest rank.
func noiseFloor(differences []float64) float64 {
	abs := make([]float64, len(differences))
	for i, d := range differences {
		abs[i] = math.Abs(d)
	}
	slices.Sort(abs)
	return abs[int(math.Ceil(0.9*float64(len(abs))))-1]
}

// mostMoreRuns is where "measure more" stops being advice.
const mostMoreRuns = 200

// runsToSettle is the number of further repeats after which Student's interval
// around the same mean, with the same spread, would be narrower than distance
// on either side; 0 if that is out of reach.
func runsToSettle(xs []float64, distance float64) int {
	spread := deviation(xs)
	settled := func(more int) bool {
		total := len(xs) + more
		return studentQuantile(0.975, total-1)*spread/math.Sqrt(float64(total)) < distance
	}
	if !settled(mostMoreRuns) {
		return 0
	}
	return 1 + sort.Search(mostMoreRuns-1, func(i int) bool { return settled(1 + i) })
}

func average(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// deviation is the sample standard deviation.
func deviation(xs []float64) float64 {
	mean, sum := average(xs), 0.0
	for _, x := range xs {
		sum += (x - mean) * (x - mean)
	}
	return math.Sqrt(sum / float64(len(xs)-1))
}
