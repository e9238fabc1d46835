package histogram_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spillway-go/spillway/histogram"
)

// Quantile skips many buckets at a time. The obvious way is to add up all buckets, in rising order. Counts of more
// than 32 bits are kept apart.
func TestQuantileIsThatOfAllBuckets(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var h histogram.Histogram
		for range 1 + random.IntN(100) {
			n := uint64(1 + random.IntN(3))
			if random.IntN(4) == 0 {
				n <<= 31 + random.IntN(4)
			}
			h.RecordN(random.Int64()>>random.IntN(63), n)
		}
		for range 50 {
			q := random.Float64()
			rank, want := uint64(math.Ceil(q*float64(h.Count()))), h.Max()
			if rank <= 1 {
				want = h.Min()
			} else if rank < h.Count() {
				seen := uint64(0)
				for v, n := range h.Buckets() {
					if seen += n; seen >= rank {
						want = min(max(v, h.Min()), h.Max())
						break
					}
				}
			}
			if got := h.Quantile(q); got != want {
				t.Fatalf("Quantile(%v) is %d, want %d", q, got, want)
			}
		}
	}
}
