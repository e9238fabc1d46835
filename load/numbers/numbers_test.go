package numbers

import (
	"math"
	"testing"
)

func TestMeasuredValuesHaveThreeDigitsAndCommas(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 7: "7", 0.051: "0.051", 4.3111: "4.31", 12.34: "12.3", 99.96: "100", 123.4: "123", 999.6: "1,000",
		11104: "11,104", 1e6: "1,000,000", -2500: "−2,500", -1.5: "−1.50", math.Inf(1): "–", math.NaN(): "–",
	} {
		if got := Format(v); got != want {
			t.Errorf("%v is written %q, want %q", v, got, want)
		}
	}
}

func TestBoundsKeepTheirDigits(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", math.Copysign(0, -1): "0", 1.005: "1.005", 0.1 * 3: "0.3", 100: "100", 1.10: "1.1", 2336.4: "2,336.4", 2124 * 0.9: "1,911.6",
		1234567: "1,234,567", -2500: "−2,500", -0.5: "−0.5", 0.00002: "0.00002", math.Inf(1): "–",
	} {
		if got := Bound(v); got != want {
			t.Errorf("%v is written %q, want %q", v, got, want)
		}
	}
}
