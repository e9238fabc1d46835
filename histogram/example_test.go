package histogram_test

import (
	"fmt"
	"time"

	"github.com/spillway-go/spillway/histogram"
)

// Merged quantiles are the quantiles of all values that both processes recorded.
func ExampleHistogram_Merge() {
	var fast, slow histogram.Histogram
	fast.RecordN(int64(10*time.Millisecond), 980)
	slow.RecordN(int64(2*time.Second), 20)

	fast.Merge(&slow)
	quantile := func(q float64) time.Duration { return time.Duration(fast.Quantile(q)).Round(time.Millisecond) }
	fmt.Println(fast.Count(), quantile(0.5), quantile(0.99))
	// Output: 1000 10ms 2s
}
