//go:build !linux

package loadgen

import "time"

func virtualClock() bool { return false }

// preciseSleep returns nil: timers are what there is. What they are late by is
// in Result.Lag.
func preciseSleep() func(time.Duration) { return nil }
