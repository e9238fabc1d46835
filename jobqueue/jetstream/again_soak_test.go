//go:build soak

package jetstream

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
)

// Jobs that the limiter refused get its room as other jobs end, without a wait of a second each
// while slots are free. With the wait, 600 jobs of 40 ms at four a time took 51 s, and were
// deferred 21,012 times.
func TestSoakAJobThatEndsHasTheLimiterAskedAgain(t *testing.T) {
	const most, jobs, work = 16, 200, 10 * time.Millisecond
	deferred, took := refusedAtFirst(t, most, jobs, func() { time.Sleep(work) })
	// Deferred jobs also ask the limiter again after limiterAgain, which matters on a slow disk.
	again := most * (1 + took/limiterAgain)
	soak.AtMost(t, "times that jobs were deferred", float64(deferred), float64(2*jobs+again), "", "one for the end of each job, as many again, and those in hand once a second")
}
