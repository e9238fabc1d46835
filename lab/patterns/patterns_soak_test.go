//go:build soak && !race

package patterns

import (
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
)

// Passing means that the published faults show as often as goroutines that meet make them.
func TestSoakThePublishedFaultsShowOften(t *testing.T) {
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
