//go:build soak && !race

package burst

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
)

// Passing means that every contestant finishes jobs in a burst of half a second, and that
// its goroutines are counted.
func TestSoakEveryContestantFinishesJobsInABurst(t *testing.T) {
	c := tiny()
	c.Time = 500 * time.Millisecond
	for _, name := range Names() {
		w, err := c.run(t.Context(), name, nil, patience)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r := w.out
		soak.AtLeast(t, name+": finished jobs", float64(r.Of("ok").Count), 1, "", "a job takes some milliseconds")
		soak.AtLeast(t, name+": goroutines", float64(r.Process.PeakGoroutines), 10, "", "there are ten generators")
	}
}
