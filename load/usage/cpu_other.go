//go:build !unix

package usage

import (
	"math"
	"time"
)

// CPU is 0: this system does not tell.
func CPU() time.Duration { return 0 }

// ThreadTime runs f and returns the elapsed time: this system has no clock for the
// processor time of a thread.
func ThreadTime(f func()) time.Duration {
	started := time.Now()
	f()
	return time.Since(started)
}

// OpenFiles has no bound that this system tells.
func OpenFiles() int { return math.MaxInt }
