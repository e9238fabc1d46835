package probe

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return seconds(u.Utime) + seconds(u.Stime)
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

// rss reads the kernel's high-water mark of the process's own memory. Rusage has
// one too, which a child inherits from its parent.
type rss struct{}

// reset makes the kernel forget the peak so far. Where it may not, the peak is
// that of the whole process.
func (rss) reset() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

func (rss) peak() uint64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	line, _, _ := bytes.Cut(rest, []byte("kB"))
	kib, _ := strconv.ParseUint(string(bytes.TrimSpace(line)), 10, 64)
	return kib * 1024
}
