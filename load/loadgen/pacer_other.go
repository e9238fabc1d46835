//go:build !linux

package loadgen

import "time"

func virtualClock() bool { return false }

// preciseSleep returns nil: this platform has timers only. Their delay is in
// Result.Lag.
func preciseSleep() func(time.Duration) { return nil }
