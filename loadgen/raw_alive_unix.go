//go:build unix

package loadgen

import (
	"net"
	"syscall"
)

// alive reports whether an idle connection is still open and silent. It never waits.
func alive(c net.Conn) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	silent := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, err := syscall.Read(int(fd), b[:])
		silent = err == syscall.EAGAIN
		return true
	})
	return err == nil && silent
}
