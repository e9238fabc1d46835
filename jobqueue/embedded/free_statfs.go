//go:build linux || darwin || freebsd

package embedded

import "syscall"

// freeBytes returns the free space on the disk of a folder.
func freeBytes(dir string) (bytes int64, known bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
