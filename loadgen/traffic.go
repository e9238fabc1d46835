package loadgen

import (
	"context"
	"net"
	"sync/atomic"
)

// traffic counts the bytes of a target.
type traffic struct{ sent, received atomic.Uint64 }

func (t *traffic) add(sent, received int) {
	t.sent.Add(uint64(sent))
	t.received.Add(uint64(received))
}

// dial opens a connection for net/http.
func (t *traffic) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &countedConn{Conn: c, traffic: t}, nil
}

type countedConn struct {
	net.Conn
	traffic *traffic
	written atomic.Uint64 // bytes
	look    look          // of the goroutine whose request has the connection
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
