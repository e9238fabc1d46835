//go:build soak && !race

package workerpool

import (
	"fmt"
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
)

// A pool without a fixed size does most of the work that the best fixed size does, whatever the
// work and its changes. Time is virtual; the test takes half a minute. The race detector would take
// ten times as long, and finds nothing more than in the gate.
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
