package judge

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
)

// slowTail counts all 2^n ways in which n values can lie under and over their median.
func slowTail(n int, level float64) int {
	ways := make([]int, n+1)
	for sides := range 1 << n {
		ways[bits.OnesCount(uint(sides))]++
	}
	k, sum := -1, 0
	for i, w := range ways {
		if sum += w; 2*float64(sum)/float64(int(1)<<n) > level {
			break
		}
		k = i
	}
	return k
}

func TestTailAgreesWithCountingAllWays(t *testing.T) {
	for looks := range 5 {
		for n := range 17 {
			if got, want := tail(n, looks), slowTail(n, 1./16/float64(int(1)<<looks)); got != want {
				t.Errorf("%d repeats at look %d: %d values left out at either end, want %d", n, looks, got, want)
			}
		}
		if n := MinRepeats + looks; tail(n, looks) != 0 || tail(n-1, looks) != -1 {
			t.Errorf("%d repeats should just be enough at look %d", n, looks)
		}
	}
	// From printed tables of the sign test: of 100 values, the 41st and the 60th have 94.3 %.
	if got := tail(100, 0); got != 40 {
		t.Errorf("of 100: %d, want 40", got)
	}
	if got := tail(5000, 0); math.Abs(float64(got)-(2500-1.8627*math.Sqrt(5000)/2)) > 1.5 {
		t.Errorf("of 5,000: %d", got)
	}
}

func TestMedianOfAnEvenNumber(t *testing.T) {
	if got := (Question{}).middle([]float64{1, 2, 4, 9}); got != 3 {
		t.Errorf("median %v, want 3", got)
	}
	if got := (Question{Ratio: true}).middle([]float64{1, 2, 8, 9}); math.Abs(got-4) > 1e-12 {
		t.Errorf("median ratio %v, want 4", got)
	}
}

func TestNoiseFloorIsTheLargestOfFewAndShrugsOffOneOfMany(t *testing.T) {
	if got := noiseFloor([]float64{.01, -.04, .02}); got != .04 {
		t.Errorf("floor of three = %v, want the largest, 0.04", got)
	}
	many := make([]float64, 20)
	for i := range many {
		many[i] = .01
	}
	many[7] = -3
	if got := noiseFloor(many); got != .01 {
		t.Errorf("floor of twenty with one bad run = %v, want 0.01", got)
	}
}

// slowMoreRuns sorts every continuation and asks the rule.
func slowMoreRuns(c *court) int {
	n := len(c.values)
	var xs []float64
	for _, x := range c.values {
		xs = append(xs, c.scaled(x))
	}
	mean, squares := 0.0, 0.0
	for _, x := range xs {
		mean += x / float64(n)
	}
	for _, x := range xs {
		squares += (x - mean) * (x - mean)
	}
	rng := rand.New(rand.NewPCG(c.Seed, uint64(n)))
	means, deviations, sorted := make([]float64, futures), make([]float64, futures), make([][]float64, futures)
	for i := range futures {
		chi := 0.0
		for range n - 1 {
			z := rng.NormFloat64()
			chi += z * z
		}
		deviations[i] = math.Sqrt(squares / chi)
		means[i] = mean + deviations[i]/math.Sqrt(float64(n))*rng.NormFloat64()
		sorted[i] = slices.Clone(xs)
	}
	for more := 1; more <= mostMoreRuns; more++ {
		settled := 0
		for i := range futures {
			sorted[i] = append(sorted[i], means[i]+deviations[i]*rng.NormFloat64())
			slices.Sort(sorted[i])
			k, m := tail(n+more, c.Looks+1), n+more
			if k < 0 {
				continue
			}
			if v := c.rule.decide(sorted[i][k], sorted[i][m-1-k], c.spread); v != Inconclusive && v == c.rule.decide(sorted[i][(m-1)/2], sorted[i][m/2], c.floor) {
				settled++
			}
		}
		if settled >= futures*95/100 {
			return more
		}
	}
	return 0
}

func TestMoreRunsAgreesWithSortingEveryContinuation(t *testing.T) {
	t.Parallel()
	soak.WithoutRace(t)
	rng := rand.New(rand.NewPCG(3, 4))
	advised := 0
	for range 3 {
		for _, rule := range []Rule{AtLeast(0), Below(0), Between(-1, 3), Outside(-1, 3), {Low: -1, Top: 3, Outside: true}} {
			xs := make([]float64, 5+rng.IntN(6))
			mean := 1.5 + 3*rng.NormFloat64()
			for i := range xs {
				xs[i] = mean + rng.NormFloat64()
			}
			slices.Sort(xs)
			c := &court{Question: Question{Rule: rule}, Input: Input{Seed: rng.Uint64(), Looks: rng.IntN(3)}, values: xs, rule: rule, spread: .2 * rng.Float64(), floor: .4 * rng.Float64()}
			got, want := c.moreRuns(), slowMoreRuns(c)
			if got != want {
				t.Errorf("%+v, %v: %d more runs, want %d", rule, xs, got, want)
			}
			if got > 0 {
				advised++
			}
		}
	}
	if advised < 3 {
		t.Errorf("advice in only %d cases", advised)
	}
}

func TestMoreRunsOfAShareStayInItsRange(t *testing.T) {
	c := &court{Question: Question{Min: 0, Max: 100}, values: []float64{98, 99, 100, 100, 100}, rule: AtMost(101)}
	if got := c.moreRuns(); got != 1 {
		t.Errorf("%d more runs, want 1: no continuation can be over 100", got)
	}
}
