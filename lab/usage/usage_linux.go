package usage

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
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
	return number(line) << 10
}

const ticksPerSecond = 100 // of /proc, whatever the kernel's own

// Of returns what another process has used so far, seen from outside. What the system
// does not tell, as of a process that has ended, is 0.
func Of(pid int) (o Outside) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return o
	}
	// The name, in parentheses, may contain any characters; the third field follows it.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) > 21 {
		o.CPUSeconds = float64(number(fields[11])+number(fields[12])) / ticksPerSecond
		o.RSS = number(fields[21]) * uint64(os.Getpagesize())
	}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, path := range threads {
		status, err := os.ReadFile(path)
		if err != nil {
			continue // it ended
		}
		for _, name := range []string{"\nvoluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"} {
			_, rest, _ := bytes.Cut(status, []byte(name))
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			o.Switches += number(line)
		}
	}
	return o
}

func number(text []byte) uint64 {
	n, _ := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
	return n
}
