//go:build soak

package admission

import (
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
)

// Passing means that runs of a second have every figure that the claims are judged by.
func TestSoakASessionOfAdmissionHasEveryFigure(t *testing.T) {
	_, runs := smallSession(t, time.Second)
	for _, r := range runs {
		of := r.Setup + " " + r.Pattern
		missing := 0.0
		for _, key := range map[string][]string{storm: {"goodput", "critical"}, leavers: {"goodput"}, dryrun: {"shed", "unsafe", "refused"}, hostile: {"probe_worst_ms"}, holders: {"answered", "inside"}}[strings.Split(r.Setup, ",")[0]] {
			if _, ok := r.Extra[key]; !ok {
				t.Errorf("%s has no %s: %v", of, key, r.Extra)
				missing++
			}
		}
		soak.AtMost(t, of+": figures that are missing", missing, 0, "", "a second is enough for each")
		if r.Load == "0.5x" && r.Pattern == ours {
			soak.AtLeast(t, of+": connections", r.Extra["connections"], 41, "", "40 idle ones are held beside those of the attack")
			soak.AtLeast(t, of+": the median probe", r.Extra["probe_p50_ms"], 0.001, "ms", "a probe was answered during the attack")
		}
	}
}
