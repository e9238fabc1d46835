//go:build unix

package patterns

import (
	"fmt"
	"syscall"
)

// spareFiles is what a process needs besides its connections.
const spareFiles = 100

// enoughFiles checks that as many connections may be open as there are clients.
// Go raises the soft limit to the hard one before main.
func enoughFiles(c Config) error {
	most := 0
	for _, name := range []string{Low, High, Sustained, Brisk} {
		most = max(most, c.load(name, Real, "").clients)
	}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil && uint64(limit.Max) < uint64(most+spareFiles) {
		return fmt.Errorf("%d clients need %d open files and this session may have %d: raise it with ulimit -n %d, or take fewer --clients",
			most, most+spareFiles, limit.Max, most+spareFiles)
	}
	return nil
}
