package loadgen

import (
	"net"
	"sync/atomic"
)

// traffic counts the bytes of a target.
type traffic struct{ sent, received atomic.Uint64 }

func (t *traffic) add(sent, received int) {
	t.sent.Add(uint64(sent))
	t.received.Add(uint64(received))
}

// countedConn is a connection of net/http.
type countedConn struct {
	net.Conn
	traffic *traffic
	written atomic.Uint64 // bytes
	peeker  peeker        // of the goroutine whose request has the connection
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.traffic.add(0, n)
	return n, err
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written.Add(uint64(n))
	c.traffic.add(n, 0)
	return n, err
}

// Traffic returns how many bytes were sent and received so far: requests and answers with their
// headers, counted after encryption over TLS. Bytes of targets beside h are counted by h.
func (h *HTTP) Traffic() (sent, received uint64) {
	if h.cfg.Beside != nil {
		return 0, 0
	}
	return h.common.traffic.sent.Load(), h.common.traffic.received.Load()
}
