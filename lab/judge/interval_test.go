package judge

import (
	"math"
	"math/bits"
	"testing"
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
