//go:build unix

package results

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the file for this process until it is closed. On a file system without
// locks two sessions are not noticed.
func lock(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return nil
}
