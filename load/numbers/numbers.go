// Package numbers writes numbers for people.
package numbers

import (
	"math"
	"strconv"
	"strings"
)

// Format writes three significant digits, with commas between thousands: a measured value.
func Format(v float64) string {
	abs := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case abs >= 1e15:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case abs >= 999.5:
		return thousands(strconv.FormatFloat(v, 'f', 0, 64))
	case v < 0:
		return "−" + Format(abs)
	case abs >= 99.95 || v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case abs >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case abs >= .9995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Bound writes a chosen value: as many digits as it has, up to six, and no zeros after them.
func Bound(v float64) string {
	abs := math.Abs(v)
	if math.IsNaN(v) || math.IsInf(v, 0) || v != 0 && (abs < 1e-6 || abs >= 1e15) {
		return Format(v)
	}
	// Rounding first keeps 0.1 × 3 from having sixteen digits.
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if abs >= 1e6 {
		rounded = math.Round(v)
	}
	return thousands(strconv.FormatFloat(rounded+0, 'f', -1, 64)) // −0 + 0 = 0
}

// thousands puts commas between the thousands of a decimal number.
func thousands(decimal string) string {
	digits, negative := strings.CutPrefix(decimal, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	var b strings.Builder
	if negative {
		b.WriteString("−")
	}
	for i, d := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	if fraction != "" {
		b.WriteString("." + fraction)
	}
	return b.String()
}
