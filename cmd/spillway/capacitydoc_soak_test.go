//go:build soak

package main

import (
	"fmt"
	"math"
	"testing"

	"github.com/spillway-go/spillway/cmd/spillway/internal/simulate"
	"github.com/spillway-go/spillway/internal/pages"
	"github.com/spillway-go/spillway/load/numbers"
)

// Passing means that the figures of large fleets in docs/operate/capacity.md are what their commands give.
func TestSoakTheFiguresOfLargeFleetsInCapacity(t *testing.T) {
	breaksFirst(t, true)

	storm := simulated(t, "fleet-storm")
	for _, o := range storm {
		pages.Says(t, capacityPage, fmt.Sprintf("| %s | %s |", o.Policy, inTheStorm(o)))
	}
	for _, fewer := range []string{"20", "100"} {
		for i, o := range simulated(t, "fleet-storm --replicas "+fewer)[:4] {
			if apart := farthest(o, storm[i]); apart > .01 {
				t.Errorf("%s with %s replicas: %.1f points from a thousand: the page says one", o.Policy, fewer, 100*apart)
			}
		}
	}

	queue := map[string]string{}
	for _, o := range simulated(t, "fleet-queue") {
		queue[o.Policy] = percent(*o.Total.Served)
	}
	pages.Says(t, capacityPage, fmt.Sprintf("%s answered in all, where the limiter answers %s; with deadlines beside it %s (`spillway sim fleet-queue`)",
		queue["budget"], queue["limiter"], queue["deadlines + budget"]))

	million := simulated(t, "million")[0]
	pages.Says(t, capacityPage, fmt.Sprintf("Before it %s are answered, in it %s, at the end %s; the p50 is %s ms",
		percent(million.Answered.Before), percent(million.Answered.During), percent(million.Answered.End), numbers.Format(*million.Total.P50)))
}

// farthest is how far two outcomes are apart in what is answered.
func farthest(a, b simulate.Outcome) float64 {
	return max(math.Abs(a.Answered.During-b.Answered.During), math.Abs(a.Answered.End-b.Answered.End), math.Abs(*a.Total.Served-*b.Total.Served))
}
