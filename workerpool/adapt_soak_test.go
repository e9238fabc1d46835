//go:build soak && !race

package workerpool

import (
	"fmt"
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
)

// A pool without a number does most of what the best fixed size does, whatever the work and
// however it changes. Time is virtual; it takes half a minute to play. The race detector
// would make it ten times as much, and finds nothing that it does not find in the gate.
func TestSoakWithoutANumberAPoolDoesMostOfWhatTheBestSizeDoes(t *testing.T) {
	for _, c := range adaptations() {
		t.Run(c.name, func(t *testing.T) {
			c.check(t, 4, func(s shape, share, atOnce, most float64) {
				what := fmt.Sprintf("%s, %v and %v", c.name, s.computes, s.waits)
				soak.AtLeast(t, what+": share of the best size", share, c.share, "", "the law reached 0.05 more and above, as the mean of four seeds")
				soak.AtMost(t, what+": jobs at once", atOnce, most, "", "a law that gains nothing by more jobs runs no more of them")
			})
		})
	}
}
