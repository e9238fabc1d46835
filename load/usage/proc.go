package usage

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Resident is the resident memory of a process and its peak, in bytes. The peak is the
// kernel's own, so it includes what happens between two looks. (getrusage cannot be
// used: a child starts with its parent's peak.)
func Resident(pid int) (now, peak uint64) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return number(string(status), "\nVmRSS:") << 10, number(string(status), "\nVmHWM:") << 10
}

const ticksPerSecond = 100 // of /proc, whatever the kernel's own

// Of returns what another process has used so far, seen from outside. What the system
// does not tell, as of a process that has ended, is 0.
func Of(pid int) (o Outside) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// The name, in parentheses, may contain any characters; the third field follows it.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) > 21 {
		o.CPUSeconds = float64(number(fields[11], "")+number(fields[12], "")) / ticksPerSecond
		o.RSS = number(fields[21], "") * uint64(os.Getpagesize())
	}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, path := range threads {
		status, _ := os.ReadFile(path) // nothing if it has ended
		o.Switches += number(string(status), "\nvoluntary_ctxt_switches:") + number(string(status), "\nnonvoluntary_ctxt_switches:")
	}
	return o
}

// number is what follows name in text; 0 if it is not there, as on systems without /proc.
func number(text, name string) (n uint64) {
	_, rest, _ := strings.Cut(text, name)
	_, _ = fmt.Sscan(rest, &n)
	return n
}
