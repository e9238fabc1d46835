package limit

import (
	"math"
	"testing"
	"time"
)

func TestTheFastLogarithmIsTheLogarithm(t *testing.T) {
	check := func(d time.Duration) {
		if got, want := logOf(d), math.Log(max(float64(d), 1)); math.Abs(got-want) > 1e-10 {
			t.Fatalf("%d ns: %v, want %v", d, got, want)
		}
	}
	for _, d := range []time.Duration{math.MinInt64, -1, 0, math.MaxInt64} {
		check(d)
	}
	for x := 1.0; x < math.MaxInt64; x *= 1.0003 {
		check(time.Duration(x))
	}
	for i := range 63 {
		check(1 << i)
		check(1<<i - 1)
	}
}
