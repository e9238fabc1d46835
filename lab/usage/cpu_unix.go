//go:build unix

package usage

import (
	"math"
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

// OpenFiles is how many files this process may have open at one time. Go raises the soft
// limit to the hard one before main.
func OpenFiles() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxInt
	}
	return int(min(uint64(limit.Max), math.MaxInt))
}
