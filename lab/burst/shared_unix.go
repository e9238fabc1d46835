//go:build unix

package burst

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// share maps the counters that a file holds, until unshare.
func share(path string) (c *counters, unshare func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	const size = int(unsafe.Sizeof(*c))
	if err := f.Truncate(int64(size)); err != nil {
		return nil, nil, err
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("the memory shared with a contestant: %w", err)
	}
	return (*counters)(unsafe.Pointer(unsafe.SliceData(memory))), func() { _ = unix.Munmap(memory) }, nil
}
