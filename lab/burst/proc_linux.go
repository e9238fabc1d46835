package burst

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// seen is what a process has used so far, measured from outside.
type seen struct {
	cpu      float64 // seconds
	rss      uint64  // bytes, now
	switches uint64  // of its threads that are alive, by the system
}

const ticksPerSecond = 100 // of /proc, whatever the kernel's own

func seenOf(pid int) seen {
	var u seen
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u
	}
	// The name, in parentheses, may contain any characters; the third field follows it.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) > 21 {
		user, _ := strconv.ParseUint(string(fields[11]), 10, 64)
		system, _ := strconv.ParseUint(string(fields[12]), 10, 64)
		pages, _ := strconv.ParseUint(string(fields[21]), 10, 64)
		u.cpu, u.rss = float64(user+system)/ticksPerSecond, pages*uint64(os.Getpagesize())
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
			n, _ := strconv.ParseUint(string(bytes.TrimSpace(line)), 10, 64)
			u.switches += n
		}
	}
	return u
}
