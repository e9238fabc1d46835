//go:build !race

package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/pages"
	"github.com/spillway-go/spillway/internal/sim"
)

// The race detector makes this test ten times as slow. It finds nothing, because a run is one
// goroutine.

// TestTheLimitStaysTrueForHours simulates three hours at one and a half times the capacity, because
// a drift of the law would be slow. In the last two and a half hours, the median limit of each ten
// seconds is compared with the backend's slots.
func TestTheLimitStaysTrueForHours(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates hours")
	}
	const slots = 20
	backends := []sim.Backend{sim.NWay(slots), sim.Degrading(slots, 0.5)}
	for seed := range uint64(2) {
		name, b := []string{"nway", "degrading"}[seed%2], backends[seed%2]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := service(b, 1.5)
			s.Seed, s.Duration, s.Warmup = seed+1, 180*time.Minute, 30*time.Minute
			r := run(t, s)
			window := int(10 * sec / r.Interval)
			low, high := 1<<30, 0
			for points := range slices.Chunk(r.Timeline[s.Warmup/r.Interval:], window) {
				limits := make([]int, len(points))
				for i, p := range points {
					limits[i] = p.Limit
				}
				slices.Sort(limits)
				m := limits[len(limits)/2]
				low, high = min(low, m), max(high, m)
			}
			t.Logf("medians from %d to %d, goodput %.1f of %.1f", low, high, r.Total.Goodput, s.Capacity())
			pages.Says(t, "docs/adr/0005-every-change-of-the-limit-is-a-trial.md",
				fmt.Sprintf("%d to %d for %s", low, high, map[string]string{"nway": "20 slots that queue", "degrading": "20 that thrash"}[name]))
			// The limit may be higher where additional calls in the backend cost no goodput.
			if most := map[string]int{"nway": 5 * slots / 2, "degrading": 13 * slots / 10}[name]; low < 4*slots/5 || high > most || r.Total.Goodput < 0.95*s.Capacity() {
				t.Errorf("limits from %d to %d, at most %d wanted; goodput %.1f", low, high, most, r.Total.Goodput)
			}
		})
	}
}
