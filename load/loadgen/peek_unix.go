//go:build unix

package loadgen

import (
	"net"
	"syscall"
)

// peeker looks at idle connections, one at a time. Its buffers are reused: the first look allocates.
type peeker struct {
	raw    syscall.RawConn
	peek   func(fd uintptr)
	silent bool
}

// alive reports whether c, always the same connection, is still open and silent. It takes no byte
// from the connection and never waits, also while another goroutine reads.
func (l *peeker) alive(c net.Conn) bool {
	if l.raw == nil {
		s, ok := c.(syscall.Conn)
		if !ok {
			return true
		}
		var err error
		if l.raw, err = s.SyscallConn(); err != nil {
			return false
		}
		var b [1]byte
		l.peek = func(fd uintptr) {
			_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			l.silent = err == syscall.EAGAIN || err == syscall.EINTR
		}
	}
	l.silent = false
	return l.raw.Control(l.peek) == nil && l.silent
}
