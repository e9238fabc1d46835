package results

import (
	"slices"

	"github.com/spillway-go/spillway/histogram"
)

// Bounds are the latencies by which Point.Took counts, in microseconds: six to a decade,
// from 10 µs to 100 s.
var Bounds = bounds()

func bounds() (all []int64) {
	const top = 100_000_000
	for unit := int64(1); 10*unit < top; unit *= 10 {
		for _, units := range []int64{10, 15, 20, 30, 50, 70} {
			all = append(all, units*unit)
		}
	}
	return append(all, top)
}

// Bound is the place in Bounds of the first that is not below a latency in microseconds. The
// last also stands for everything above.
func Bound(latency int64) int {
	i, _ := slices.BinarySearch(Bounds, latency)
	return min(i, len(Bounds)-1)
}

// Took counts latencies in nanoseconds as Point.Took does.
func Took(latencies *histogram.Histogram) map[int64]uint64 {
	took := map[int64]uint64{}
	for b := range latencies.Buckets() {
		took[Bounds[Bound((b.Low+999)/1000)]] += b.Count
	}
	return took
}
