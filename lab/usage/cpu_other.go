//go:build !unix

package usage

import (
	"math"
	"time"
)

// CPU is the processor time of this process so far, which this system does not tell.
func CPU() time.Duration { return 0 }

// OpenFiles is how many files this process may have open at one time, which this system
// does not tell.
func OpenFiles() int { return math.MaxInt }
