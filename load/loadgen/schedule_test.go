package loadgen

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestConstantAgreesWithExactFractions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		rate := math.Exp(random.Float64()*16 - 2)
		s := Constant(rate, time.Hour)
		exactRate := new(big.Rat).SetFloat64(rate)
		for range 20 {
			n := random.Uint64N(uint64(rate*3600) + 1)
			exact := new(big.Rat).Quo(new(big.Rat).SetInt64(int64(n)*1e9), exactRate)
			want, _ := exact.Float64()
			if at, ok := s.At(n); ok && math.Abs(float64(at)-want) > 1 {
				t.Fatalf("request %d at %v a second: %v, want %v ns", n, rate, at, want)
			}
		}
	}
}

func TestConstantHasRateTimesLengthRequests(t *testing.T) {
	for _, c := range []struct {
		rate float64
		d    time.Duration
		want int
	}{{1000, time.Second, 1000}, {3, time.Second, 3}, {0.1, 10 * time.Second, 1}, {1, 1500 * time.Millisecond, 2}, {7, time.Minute, 420}, {1e6, 50 * time.Millisecond, 50_000}} {
		s := Constant(c.rate, c.d)
		if got := len(slices.Collect(Times(s))); got != c.want {
			t.Errorf("%v a second for %v: %d requests, want %d", c.rate, c.d, got, c.want)
		}
		if at, ok := s.At(math.MaxUint64); ok || at != c.d {
			t.Errorf("past the end: %v, %v, want the length", at, ok)
		}
	}
}

func TestWalkingAScheduleGivesWhatAtGives(t *testing.T) {
	legs := []Leg{{0, 400, time.Second}, Steady(0, time.Second), {200, 100, time.Second}}
	for _, s := range []Schedule{Constant(333, time.Second), Poisson(333, time.Second, 7), onlyAt{Constant(50, time.Second)},
		Even(legs...), Random(7, legs...), Trace([]time.Duration{3, 1, 4, 1, 5})} {
		next := walk(s)
		for n := range uint64(400) { // beyond the end too
			at, ok := next()
			if wantAt, wantOK := s.At(n); at != wantAt || ok != wantOK {
				t.Fatalf("%T: request %d walked to %v, %v, At says %v, %v", s, n, at, ok, wantAt, wantOK)
			}
		}
	}
}

type onlyAt struct{ s Schedule }

func (o onlyAt) At(n uint64) (time.Duration, bool) { return o.s.At(n) }

func TestPoissonGapsAreExponential(t *testing.T) {
	const rate, seconds = 1000.0, 100
	for seed := range uint64(20) {
		times := slices.Collect(Times(Poisson(rate, seconds*time.Second, seed)))
		if dev := math.Abs(float64(len(times)) - rate*seconds); dev > 5*math.Sqrt(rate*seconds) {
			t.Errorf("seed %d: %d requests, want %v ± 5σ", seed, len(times), rate*seconds)
		}
		// Exponential: the standard deviation equals the mean, a share 1/e is longer.
		var sum, squares float64
		long := 0
		for i := 1; i < len(times); i++ {
			gap := (times[i] - times[i-1]).Seconds() * rate
			sum, squares = sum+gap, squares+gap*gap
			if gap > 1 {
				long++
			}
		}
		n := float64(len(times) - 1)
		mean := sum / n
		if cv := math.Sqrt(squares/n-mean*mean) / mean; !within(mean, 1, 0.02) || !within(cv, 1, 0.03) || !within(float64(long)/n, 1/math.E, 0.02) {
			t.Errorf("seed %d: mean gap %v, variation %v, above the mean %v", seed, mean, cv, float64(long)/n)
		}
	}
}

func TestPoissonDependsOnItsSeedOnly(t *testing.T) {
	a, b, c := Poisson(100, time.Second, 1), Poisson(100, time.Second, 1), Poisson(100, time.Second, 2)
	if !slices.Equal(slices.Collect(Times(a)), slices.Collect(Times(b))) {
		t.Error("the same seed gave two schedules")
	}
	if slices.Equal(slices.Collect(Times(a)), slices.Collect(Times(c))) {
		t.Error("two seeds gave the same schedule")
	}
}
