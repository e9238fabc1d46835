//go:build !unix

package usage

import "time"

// CPU is the processor time of this process so far, which this system does not tell.
func CPU() time.Duration { return 0 }
