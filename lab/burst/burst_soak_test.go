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
		w, err := c.run(t.Context(), name, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r := w.out
		soak.AtLeast(t, name+": finished jobs", float64(r.Of("ok").Count), 1, "", "a job takes some milliseconds")
		soak.AtLeast(t, name+": goroutines", float64(r.Process.PeakGoroutines), 10, "", "there are ten generators")
	}
}

// Passing means that the shutdown that was published panics, as two goroutines happen to
// meet, and ours does not.
func TestSoakThePublishedShutdownPanics(t *testing.T) {
	for _, d := range demonstrations.Demos() {
		if d.ID != "shutdown-race" {
			continue
		}
		demo, err := d.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range demo.Counts {
			switch c.Name {
			case "panics, as printed":
				soak.AtLeast(t, c.Name, c.N, 1, "", "in many tries it happens")
			case "panics, ours":
				soak.AtMost(t, c.Name, c.N, 0, "", "ours never panics")
			}
		}
	}
}
