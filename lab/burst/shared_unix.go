//go:build unix

package burst

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// share maps the counters that a file holds. They stay mapped.
func share(path string) (*counters, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const size = unsafe.Sizeof(counters{})
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("the memory shared with a contestant: %w", err)
	}
	return (*counters)(unsafe.Pointer(unsafe.SliceData(memory))), nil
}

// unshare ends the mapping.
func unshare(c *counters) {
	_ = unix.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(c)), unsafe.Sizeof(*c)))
}
