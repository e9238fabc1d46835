//go:build unix

package results

import (
	"os"
	"syscall"
)

var errLocked error = syscall.EWOULDBLOCK

// lock takes the file for this process until it is closed.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
