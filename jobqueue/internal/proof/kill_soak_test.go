//go:build soak

package proof

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
)

// A hundred kills of producers, workers and the embedded server lose no acknowledged job. Only jobs
// in flight are done again.
func TestSoakKilled(t *testing.T) {
	a, tr := killed(t, 100, site{AckWait: time.Second, Attempts: 100})
	a.fewAgain(t, tr)
}

// Twenty kills, of one node of a cluster or one worker at a time, lose no acknowledged job. Only
// jobs in flight are done again.
func TestSoakKilledNodes(t *testing.T) {
	a, tr := killedNodes(t, 20, site{AckWait: 2 * time.Second, Attempts: 100})
	a.fewAgain(t, tr)
}

func (a account) fewAgain(t *testing.T, tr *trial) {
	t.Helper()
	a.nothingLost(t)
	soak.AtMost(t, "jobs done again", float64(a.duplicates), float64(tr.kills*tr.site.InFlight), "", "each kill may repeat what was in flight")
}
