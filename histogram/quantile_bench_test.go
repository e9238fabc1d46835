package histogram_test

import (
	"math/rand/v2"
	"testing"

	"github.com/spillway-go/spillway/histogram"
)

func BenchmarkQuantile(b *testing.B) {
	var h histogram.Histogram
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		h.Record(int64(random.ExpFloat64() * 1e7))
	}
	for _, c := range []struct {
		name string
		q    float64
	}{{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				h.Quantile(c.q)
			}
		})
	}
}
