//go:build unix

package loadgen

import (
	"net"
	"syscall"
)

// asker writes requests to a connection and waits for their answers to begin. The poller
// is made ready before the request is written, so that no read has to find out first that
// nothing is there yet: a system call less for each request.
type asker struct {
	raw     syscall.RawConn // nil: the connection has no descriptor
	step    func(fd uintptr) bool
	request []byte
	asked   bool
	written int
}

func newAsker(c net.Conn) *asker {
	a := new(asker)
	a.step = a.once
	if s, ok := c.(syscall.Conn); ok {
		a.raw, _ = s.SyscallConn()
	}
	return a
}

// ask returns how much of the request is written. If that is all of it, the answer has
// begun, or reading it will fail.
func (a *asker) ask(request []byte) (written int) {
	if a.raw == nil {
		return 0
	}
	a.request, a.asked, a.written = request, false, 0
	_ = a.raw.Read(a.step) // what is wrong with the connection, the next write or read finds, too
	a.request = nil
	return a.written
}

// once is called first when the poller is ready, and again when there is something to read.
func (a *asker) once(fd uintptr) (done bool) {
	if a.asked {
		return true
	}
	a.asked = true
	if n, err := syscall.Write(int(fd), a.request); err == nil {
		a.written = n
	}
	return a.written < len(a.request)
}

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
