//go:build !linux

package burst

import "time"

// processorTime runs f and returns how long it took: here there is no clock of
// a thread's processor time.
func processorTime(f func()) time.Duration {
	started := time.Now()
	f()
	return time.Since(started)
}
