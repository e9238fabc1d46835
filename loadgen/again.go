package loadgen

import (
	"net"
	"net/http"
	"net/http/httptrace"
)

// sendAgain sends requests over a transport, and sends a request again as long as it gets idle
// connections that the server has closed and nothing of the request was written. net/http does that
// too, except in a moment in which it notices the close itself.
type sendAgain struct {
	transport *http.Transport
	http2     bool // a connection has many requests, and net/http decides alone
}

func (s *sendAgain) RoundTrip(request *http.Request) (*http.Response, error) {
	if s.http2 {
		return s.transport.RoundTrip(request)
	}
	for body := request.Body; ; {
		var t taken
		ctx := httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{GotConn: t.take})
		sent := request.WithContext(ctx)
		sent.Body = body
		answer, err := s.transport.RoundTrip(sent)
		if err == nil || !t.unused() || ctx.Err() != nil {
			return answer, err
		}
		if body != nil {
			if body, err = request.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// taken is the connection that net/http took for a request.
type taken struct {
	conn    *countedConn // nil: a new connection
	written uint64       // bytes written to conn before the request
}

// take looks at an idle connection. One that the server has closed is closed on this side too, so
// that nothing is written to it.
func (t *taken) take(info httptrace.GotConnInfo) {
	t.conn = nil
	if !info.Reused {
		return
	}
	c := info.Conn
	for { // below the layers of TLS
		upper, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = upper.NetConn()
	}
	if t.conn, _ = c.(*countedConn); t.conn == nil {
		return
	}
	t.written = t.conn.written.Load()
	if !t.conn.look.alive(t.conn.Conn) {
		_ = t.conn.Close()
	}
}

// unused reports whether the request got a kept connection and wrote nothing to it.
func (t *taken) unused() bool { return t.conn != nil && t.conn.written.Load() == t.written }
