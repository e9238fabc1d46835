package oldjudge

import "math"

// normal975 is the 0.975 quantile of the standard normal distribution.
const normal975 = 1.959963984540054

// studentCDF is the distribution function of Student's t for a whole number of
// degrees of freedom, by the finite series in cos(atan(t/√df)) of Abramowitz
// and Stegun, 26.7.3 and 26.7.4.
func studentCDF(t float64, df int) float64 {
	theta := math.Atan(t / math.Sqrt(float64(df)))
	sin, cos := math.Sincos(theta)
	var middle float64 // the probability of [-t, t]
	if df%2 == 1 {
		sum, term := 0.0, cos
		for k := 3; k <= df; k += 2 {
			sum += term
			term *= cos * cos * float64(k-1) / float64(k)
		}
		middle = 2 / math.Pi * (theta + sin*sum)
	} else {
		sum, term := 0.0, 1.0
		for k := 2; k <= df; k += 2 {
			sum += term
			term *= cos * cos * float64(k-1) / float64(k)
		}
		middle = sin * sum
	}
	return (1 + middle) / 2
}

// studentQuantile is the inverse of studentCDF for p in [0.5, 1), by bisection.
func studentQuantile(p float64, df int) float64 {
	low, high := 0.0, 1.0
	for studentCDF(high, df) < p {
		high *= 2
	}
	for range 60 {
		if mid := (low + high) / 2; studentCDF(mid, df) < p {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}
