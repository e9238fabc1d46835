//go:build unix

package contestant

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Share maps a T that a file holds, for all processes that do the same, until unshare. A
// new one is zero. T must have no pointers: other processes cannot follow them.
func Share[T any](path string) (shared *T, unshare func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	var one T
	size := int(unsafe.Sizeof(one))
	if err := f.Truncate(int64(size)); err != nil {
		return nil, nil, err
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("the memory shared between processes: %w", err)
	}
	return (*T)(unsafe.Pointer(unsafe.SliceData(memory))), func() { _ = unix.Munmap(memory) }, nil
}
