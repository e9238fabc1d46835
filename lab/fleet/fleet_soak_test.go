//go:build soak

package fleet

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
)

// Passing means that a run of seconds has every figure, measured and simulated.
func TestSoakASessionOfAFleetHasEveryFigure(t *testing.T) {
	for _, r := range smallSession(t, time.Second) {
		soak.AtLeast(t, r.Pattern+": figures", float64(len(r.Extra)), 6, "", "before, during and after the trouble, each measured and simulated")
		soak.AtMost(t, r.Pattern+": figures", float64(len(r.Extra)), 6, "", "there are no others")
	}
}
