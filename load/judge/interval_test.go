package judge

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
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
	tail := func(n, looks int) int {
		k, _, _ := tail(n, errorOf(looks))
		return k
	}
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

func TestTheIntervalLiesBetweenOrderStatistics(t *testing.T) {
	var xs []float64
	for n := 1; n <= 60; n++ {
		xs = append(xs, float64(n))
		low, high, ok := Question{}.interval(xs, errorOf(0))
		k, _, _ := tail(n, errorOf(0))
		switch {
		case ok != (k >= 0):
			t.Errorf("of %d: an interval is there: %v", n, ok)
		case ok && (low < float64(k+1) || low > float64(k+2) || math.Abs(low+high-float64(n+1)) > 1e-9):
			t.Errorf("of %d: %v to %v, want the ends between values %d and %d of either side", n, low, high, k+1, k+2)
		}
	}
	if low, high, _ := (Question{}).interval([]float64{1, 2, 3, 4, 5}, errorOf(0)); low != 1 || high != 5 {
		t.Errorf("of five values %v to %v, want the whole range", low, high)
	}
	ratios := Question{Ratio: true}
	ones := []float64{1, 2, 4, 8, 16, 32, 64}
	low, high, _ := ratios.interval(ones, errorOf(0))
	if math.Abs(low*high-64) > 1e-9 || low <= 1 || low >= 2 {
		t.Errorf("of ratios %v to %v: the ends should be as far from the middle on the scale of logarithms", low, high)
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

func TestFollowTellsRepeatsThatFollowEachOther(t *testing.T) {
	for _, c := range []struct {
		name        string
		values      []float64
		least, most float64
	}{
		{"too few", []float64{1, 2, 3, 4}, 0, 0},
		{"all the same", []float64{2, 2, 2, 2, 2, 2}, 0, 0},
		{"one after the other", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.9, 1},
		{"in turns", []float64{1, 9, 2, 8, 3, 7, 4, 6}, -1, -0.5},
		{"one disturbed", []float64{1, 2, 3, 4, 1000, 6, 7, 8, 9, 10}, 0.4, 1},
		{"two levels", []float64{1, 1, 1, 1, 1, 2, 2, 2, 2, 2}, 0.7, 1},
	} {
		if got := Follow(c.values); got < c.least || got > c.most {
			t.Errorf("%s: %v, want %v to %v", c.name, got, c.least, c.most)
		}
	}
}

// slowInflation adds up the covariances of all pairs.
func slowInflation(n int, follow float64) float64 {
	sum := 0.
	for i := range n {
		for j := range n {
			sum += 2 / math.Pi * math.Asin(math.Pow(follow, math.Abs(float64(i-j))))
		}
	}
	return sum / float64(n)
}

func TestInflationAgreesWithAllPairs(t *testing.T) {
	for _, n := range []int{5, 9, 20, 50} {
		for _, follow := range []float64{-0.5, 0, 0.3, 0.6, 0.9} {
			raised, want := follow+(1+3*follow)/float64(2*n), 1.
			if n >= LeastFollow && raised > 0 {
				want = slowInflation(n, min(raised, 0.95))
			}
			if got := inflated(n, follow); math.Abs(got-want) > 1e-9 {
				t.Errorf("%d values, %v: %v, want %v", n, follow, got, want)
			}
		}
	}
}

// Disturbed repeats once left a claim open for good: the advice came from a normal distribution of the
// same spread. The first five values are those of a measured session.
func TestOneDisturbedRepeatIsNoReasonToGiveUp(t *testing.T) {
	q := Question{Subject: "it", Ratio: true, Unit: "x", Rule: Between(1.9, 2.1)}
	xs := []float64{1.9997, 2.0018, 2.3578, 1.9992, 2.0015, 2.3578, 2.0004}
	ans := Judge(q, Input{Values: xs, Seed: 1})
	if ans.Verdict != Inconclusive || ans.MoreRuns == 0 {
		t.Fatalf("%+v, want advice", ans)
	}
	for i := range ans.MoreRuns {
		xs = append(xs, 2+0.001*float64(i%4))
	}
	if ans := Judge(q, Input{Values: xs, Looks: 1}); ans.Verdict != Holds {
		t.Errorf("after as many more as advised: %+v", ans)
	}
}

// Five or six values cannot show that they follow each other, so that the interval was once that of
// independent ones, and a trend with one value on the other side of the bound was a verdict.
func TestATrendWithOneValueOnTheOtherSideDecidesNothing(t *testing.T) {
	for n := MinRepeats; n <= 9; n++ {
		for _, turned := range []bool{false, true} {
			var xs []float64
			for i := range n {
				xs = append(xs, float64(i)-.3)
			}
			if turned {
				slices.Reverse(xs)
			}
			for _, floor := range [][]float64{nil, make([]float64, n)} {
				for _, rule := range []Rule{AtLeast(0), AtMost(0)} {
					if ans := Judge(Question{Rule: rule}, Input{Values: xs, Floor: floor}); ans.Verdict != inconclusive {
						t.Errorf("%v: %s, want no verdict: %+v", xs, ans.Verdict, ans)
					}
				}
			}
		}
	}
}

// The A/A margin once was the 90th percentile of single differences, which more repeats do not make
// smaller: an effect of one and a half deviations was decided less often after 100 repeats than
// after 20.
func TestMoreRepeatsDecideMore(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	decided := func(n int) (share float64) {
		const trials = 400
		for range trials {
			in := Input{hasty: true}
			for range n {
				in.Values, in.Floor = append(in.Values, 1.5+rng.NormFloat64()), append(in.Floor, rng.NormFloat64())
			}
			if Judge(Question{Rule: Above(0)}, in).Verdict == Holds {
				share += 1. / trials
			}
		}
		return share
	}
	var shares []float64
	for _, n := range []int{7, 10, 20, 100} {
		shares = append(shares, decided(n))
	}
	if !slices.IsSorted(shares) || shares[2] < 0.9 || shares[3] < 0.99 {
		t.Errorf("decided after 7, 10, 20 and 100 repeats: %.2f", shares)
	}
}

func TestAnInstrumentThatFavorsOneOfTwoEqualsIsVoid(t *testing.T) {
	q := Question{Subject: "B over A", Unit: "x", Ratio: true, Rule: Above(1)}
	in := Input{Values: []float64{1.10, 1.11, 1.09, 1.10, 1.12, 1.09, 1.11}, Floor: []float64{0.05, 0.06, 0.04, 0.05, 0.055, 0.04, 0.05}}
	ans := Judge(q, in)
	if ans.Verdict != Inconclusive || !ans.Void || ans.MoreRuns != 7 {
		t.Errorf("a bias of half the effect: %+v, want it void", ans)
	}
	if in.Looks = 1; Judge(q, in).MoreRuns != 0 {
		t.Error("a bias that is still there at the second look goes away by more repeats")
	}
	in.Looks, in.Floor = 0, []float64{0.0005, 0.0006, 0.0004, 0.0005, 0.0005, 0.0004, 0.0006}
	if ans := Judge(q, in); ans.Verdict != Holds {
		t.Errorf("a bias that does not matter: %+v", ans)
	}
	in.Floor = []float64{0.05, -0.06, 0.04, -0.06, 0.055, 0.05, 0.04}
	if ans := Judge(q, in); ans.Void || ans.Verdict != Holds || math.Abs(ans.Floor-math.Expm1(0.06)) > 1e-12 {
		t.Errorf("no bias: %+v", ans)
	}
}

func TestHolmAsksMoreOfOneOfSeveral(t *testing.T) {
	for _, c := range []struct {
		chances []float64
		of      int
		want    []bool
	}{
		{[]float64{1. / 32}, 1, []bool{true}},
		{[]float64{1. / 32}, 2, []bool{false}},
		{[]float64{1. / 64, 1. / 32}, 2, []bool{true, true}},
		{[]float64{1. / 32, 1. / 200}, 6, []bool{false, true}},
		{[]float64{0, 1. / 32}, 6, []bool{true, false}},
		{nil, 3, []bool{}},
	} {
		if got := Holm(c.chances, c.of, Miss(0)); !slices.Equal(got, c.want) {
			t.Errorf("%v of %d: %v, want %v", c.chances, c.of, got, c.want)
		}
	}
}

// From 55 values on, the chance that a range misses the median is too small for math.Erfcinv, and
// the interval was once the median itself.
func TestTheIntervalOfManyDependentValuesIsWide(t *testing.T) {
	for _, n := range []int{20, 54, 55, 56, 200} {
		var xs []float64
		for i := range n {
			xs = append(xs, float64(i))
		}
		for _, miss := range []float64{errorOf(0), math.Ldexp(1, 1-n)} {
			low, high, ok := Question{}.interval(xs, miss)
			wideLow, wideHigh, wideOK := Question{}.dependent(xs, miss, 3)
			if !ok || !wideOK || !(wideLow < low && wideHigh > high) || math.IsInf(wideLow, 0) || math.IsInf(wideHigh, 0) {
				t.Errorf("%d values, %g: %v to %v, and of independent ones %v to %v", n, miss, wideLow, wideHigh, low, high)
			}
		}
	}
}

func TestDeviationsOfSmallShares(t *testing.T) {
	for _, share := range []float64{.5, 1e-3, 1e-14, 1e-15, 1e-16, 1e-60, 1e-300} {
		if got := math.Erfc(deviations(share)); math.Abs(math.Log(got)/math.Log(share)-1) > 1e-3 {
			t.Errorf("of %g, beyond it is %g", share, got)
		}
	}
}
