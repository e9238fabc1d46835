//go:build soak

package jetstream

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
)

// Jobs that the limiter refused take its room as others end: not each after a second of its
// own, while slots stand free. 600 jobs of 40 ms at four a time took 51 s, and were deferred
// 21,012 times.
func TestSoakAJobThatEndsHasTheLimiterAskedAgain(t *testing.T) {
	const most, jobs, work = 16, 200, 10 * time.Millisecond
	deferred, took := refusedAtFirst(t, most, jobs, func() { time.Sleep(work) })
	// Those in hand are also asked for after limiterAgain, which counts where the disk is slow.
	again := most * (1 + took/limiterAgain)
	soak.AtMost(t, "times that jobs were deferred", float64(deferred), float64(2*jobs+again), "", "one for the end of each job, as many again, and those in hand once a second")
}
