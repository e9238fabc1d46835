//go:build soak

package stories

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
)

// Passing means that stories of a few seconds have a time line and the figures that their
// claims are judged by.
func TestSoakASessionOfStoriesHasItsFigures(t *testing.T) {
	_, runs := smallSession(t, 400*time.Millisecond)
	figures := map[string][]string{"herd": {"recovery_s", "never"}, "query": {"backlog", "bound"}, "memory": {"gc"}}
	for _, r := range runs {
		missing := 0.0
		for _, key := range figures[r.Setup] {
			if _, ok := r.Extra[key]; !ok && r.Killed == "" {
				t.Errorf("%s %s has no %s: %v", r.Setup, r.Pattern, key, r.Extra)
				missing++
			}
		}
		soak.AtMost(t, r.Setup+" "+r.Pattern+": figures that are missing", missing, 0, "", "a story of a second has each")
		soak.AtLeast(t, r.Setup+" "+r.Pattern+": points of the time line", float64(len(r.Series)), 1, "", "a story of a second has ten steps")
	}
}
