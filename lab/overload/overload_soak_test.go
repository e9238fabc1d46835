//go:build soak

package overload

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
)

// Passing means that short runs of admission and of the stories have every figure that the claims are judged by.
func TestSoakSessionsOfAdmissionAndStoriesHaveEveryFigure(t *testing.T) {
	figures := map[string][]string{
		storm: {"goodput", "critical"}, leavers: {"goodput"}, dryrun: {"shed", "unsafe", "refused"}, hostile: {"probe_worst_ms"}, holders: {"answered"},
		"herd": {"recovery_s", "never"}, "query": {"backlog", "bound"}, "memory": {"gc"},
	}
	for _, e := range []*experiment.Experiment{Admission, Stories} {
		c := experiment.Sized[Config]("quick")
		c.Pace = .15
		_, runs := labtest.Session(t, e, &c)
		for _, r := range runs {
			missing := 0.0
			name, _, _ := strings.Cut(r.Setup, ",")
			for _, key := range figures[name] {
				if _, ok := r.Extra[key]; !ok && r.Killed == "" {
					t.Errorf("%s %s has no %s: %v", r.Setup, r.Pattern, key, r.Extra)
					missing++
				}
			}
			soak.AtMost(t, r.Setup+" "+r.Pattern+": figures that are missing", missing, 0, "", "a second is enough for each")
		}
	}
}
