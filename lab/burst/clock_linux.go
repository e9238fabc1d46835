package burst

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime runs f and returns the processor time of its thread, which, unlike
// elapsed time, does not grow when the machine is busy with other work. f should not
// park.
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
