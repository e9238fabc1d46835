package usage

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime runs f and returns the processor time of its thread, which, unlike
// elapsed time, does not grow when the machine is busy with other work. f should not
// park.
func ThreadTime(f func()) time.Duration {
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

// resetPeakRSS makes the kernel forget the peak so far. Where it may not, the peak is
// that of the whole process.
func resetPeakRSS() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// peakRSS is the kernel's high-water mark of the process's own memory. Rusage has one
// too, which a child inherits from its parent.
func peakRSS() uint64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	line, _, _ := bytes.Cut(rest, []byte("kB"))
	kib, _ := strconv.ParseUint(string(bytes.TrimSpace(line)), 10, 64)
	return kib << 10
}
