//go:build unix

package usage

import (
	"time"

	"golang.org/x/sys/unix"
)

// CPU is the processor time of this process so far, user and system, as exact as the
// system reports it.
func CPU() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) == nil {
		return time.Duration(t.Nano())
	}
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
