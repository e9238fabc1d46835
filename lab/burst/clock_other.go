//go:build !linux

package burst

import "time"

// processorTime runs f and returns the elapsed time: this platform has no clock for
// the processor time of a thread.
func processorTime(f func()) time.Duration {
	started := time.Now()
	f()
	return time.Since(started)
}
