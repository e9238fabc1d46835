//go:build soak

package patterns

import (
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/usage"
)

// Passing means that the published faults show as often as goroutines that meet make them.
func TestSoakThePublishedFaultsShowOften(t *testing.T) {
	if usage.Race {
		t.Skip("the specimens are data races by design: the detector would end them before the fault shows")
	}
	least := map[string]float64{"empty 200, as printed": 900, "empty, as printed": 40_000, "another patient, cleared on Get only": 1}
	for _, d := range demonstrations.Demos() {
		demo, err := d.Run(t.Context())
		if err != nil {
			t.Errorf("%s: %v", d.ID, err)
			continue
		}
		for _, c := range demo.Counts {
			if n, ok := least[c.Name]; ok {
				soak.AtLeast(t, d.ID+": "+c.Name, c.N, n, "", "so it was each time that it was tried")
			}
		}
	}
}
