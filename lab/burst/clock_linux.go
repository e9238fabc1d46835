package burst

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime runs f and returns the time that its thread spent on a
// processor meanwhile: unlike the time that passed, it does not grow when the
// machine is busy elsewhere. f should not park.
func processorTime(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadClock()
	f()
	return threadClock() - before
}

func threadClock() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
