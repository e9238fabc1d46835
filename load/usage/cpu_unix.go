//go:build unix

package usage

import (
	"math"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// CPU is the processor time of this process so far, user and system, as exact as the
// system reports it.
func CPU() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// ThreadTime runs f and returns the processor time of its thread, which, unlike
// elapsed time, does not grow when the machine is busy with other work. f should not
// park.
func ThreadTime(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := clock(unix.CLOCK_THREAD_CPUTIME_ID)
	f()
	return clock(unix.CLOCK_THREAD_CPUTIME_ID) - before
}

func clock(id int32) time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(id, &t) // a clock that is missing stands at 0
	return time.Duration(t.Nano())
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
