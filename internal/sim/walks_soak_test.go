//go:build soak

package sim_test

import (
	"fmt"
	"testing"

	"github.com/spillway-go/spillway/internal/pages"
)

// Passing means that the law answers as much of what an oracle does as docs/adr/0005 says.
func TestSoakTheShareOfAnOracle(t *testing.T) {
	const page = "docs/adr/0005-every-change-of-the-limit-is-a-trial.md"
	list := append(arenaVisible(), arenaHidden()...)
	sum, rows := 0.0, inArena(t, list, "", 9, "adaptive")
	for _, r := range rows {
		sum += median(r.rel)
	}
	pages.Says(t, page, fmt.Sprintf("the law answers %.3f of what an oracle does", sum/float64(len(rows))))
	share := map[string]float64{}
	for _, r := range inArena(t, list, "slots1@1.5x/degr,slots2@1.5x/degr", 30, "adaptive") {
		share[r.name] = median(r.rel)
	}
	pages.Says(t, page, fmt.Sprintf("are among the worst: %.2f and %.2f", share["slots1@1.5x/degr"], share["slots2@1.5x/degr"]))
}
