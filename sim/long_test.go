//go:build !race

package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway/sim"
)

// The race detector makes this ten times as slow and finds nothing in it: a run
// is one goroutine.

// TestTheLimitStaysTrueForHours: a law that drifts drifts slowly. Three hours at
// one and a half times the capacity; of the last two and a half, the median of
// the limit in every ten seconds is compared with the backend's slots.
func TestTheLimitStaysTrueForHours(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates hours")
	}
	const (
		slots  = 20
		within = 0.10
		want   = 0.90 // of the windows
	)
	for name, b := range map[string]sim.Backend{"nway": sim.NWay(slots), "degrading": sim.Degrading(slots, 0.5)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := service(b, 1.5)
			s.Seed, s.Duration, s.Warmup = 1, 180*time.Minute, 30*time.Minute
			r := run(t, s)
			window := int(10 * sec / r.Interval)
			var right, all int
			low, high := 1<<30, 0
			for points := range slices.Chunk(r.Timeline[s.Warmup/r.Interval:], window) {
				limits := make([]int, len(points))
				for i, p := range points {
					limits[i] = p.Limit
				}
				slices.Sort(limits)
				m := limits[len(limits)/2]
				low, high = min(low, m), max(high, m)
				all++
				if d := float64(m)/slots - 1; d >= -within && d <= within {
					right++
				}
			}
			share := float64(right) / float64(all)
			t.Logf("%.4f of %d windows within 10 %%, medians from %d to %d, goodput %.1f of %.1f", share, all, low, high, r.Total.Goodput, s.Capacity())
			if share < want {
				t.Errorf("the limit is true in %.4f of the windows, want %.4f", share, want)
			}
		})
	}
}
