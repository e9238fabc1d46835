package oldjudge

import (
	"math"
	"testing"
)

func TestStudentQuantileAgreesWithPrintedTables(t *testing.T) {
	for _, c := range []struct {
		p    float64
		df   int
		want float64
	}{
		{0.975, 1, 12.706}, {0.975, 2, 4.303}, {0.975, 3, 3.182}, {0.975, 4, 2.776}, {0.975, 5, 2.571},
		{0.975, 6, 2.447}, {0.975, 9, 2.262}, {0.975, 10, 2.228}, {0.975, 19, 2.093}, {0.975, 30, 2.042},
		{0.975, 60, 2.000}, {0.975, 120, 1.980}, {0.95, 2, 2.920}, {0.95, 9, 1.833}, {0.995, 4, 4.604}, {0.5, 7, 0},
	} {
		if got := studentQuantile(c.p, c.df); math.Abs(got-c.want) > 0.0005 {
			t.Errorf("t(%d, %g) = %.4f, want %.3f", c.df, c.p, got, c.want)
		}
	}
}

func TestStudentTendsToNormal(t *testing.T) {
	if got := studentQuantile(0.975, 5000); math.Abs(got-normal975) > 0.001 {
		t.Errorf("t(5000, 0.975) = %v, want %v", got, normal975)
	}
}

// The distribution function must be the integral of the density.
func TestStudentCDFIntegratesTheDensity(t *testing.T) {
	for df := 1; df <= 12; df++ {
		n := float64(df)
		gammaUp, _ := math.Lgamma((n + 1) / 2)
		gammaDown, _ := math.Lgamma(n / 2)
		scale := math.Exp(gammaUp-gammaDown) / math.Sqrt(n*math.Pi)
		const step = 0.001
		sum := 0.5
		for i := range 3000 { // midpoints up to t = 3
			x := (float64(i) + 0.5) * step
			sum += step * scale * math.Pow(1+x*x/n, -(n+1)/2)
		}
		if got := studentCDF(3, df); math.Abs(got-sum) > 1e-6 {
			t.Errorf("F(3) with %d degrees of freedom = %v, want %v", df, got, sum)
		}
	}
}
