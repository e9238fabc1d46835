package loadgen

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// sendAgain sends requests over a transport, and sends a request again as long as it gets idle
// connections that the server has closed and nothing of the request was written. net/http does that
// too, except in a moment in which it notices the close itself.
type sendAgain struct {
	transport *http.Transport
	http2     bool // a connection has many requests, and net/http decides alone
}

func (s *sendAgain) RoundTrip(request *http.Request) (*http.Response, error) {
	for body := request.Body; ; {
		t := taken{note: noteOf(request.Context()), looks: !s.http2}
		trace := &httptrace.ClientTrace{GotConn: t.take, GotFirstResponseByte: t.begun}
		if t.note != nil && request.URL.Scheme == "https" {
			trace.TLSHandshakeStart, trace.TLSHandshakeDone = t.shake, t.shaken
		}
		ctx := httptrace.WithClientTrace(request.Context(), trace)
		sent := request.WithContext(ctx)
		sent.Body = body
		answer, err := s.transport.RoundTrip(sent)
		if err == nil || !t.unused() || ctx.Err() != nil || body != nil && request.GetBody == nil {
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
	note    *note     // nil: nobody asks how long phases take
	at      time.Time // when the request got the connection
	shook   atomic.Pointer[time.Time]
	looks   bool
	conn    *countedConn // nil: a new connection
	written uint64       // bytes written to conn before the request
}

// begun notes when the answer begins.
func (t *taken) begun() { t.note.phase(phaseFirstByte, t.at) }

// shake and shaken note a handshake, which a goroutine of net/http makes.
func (t *taken) shake() {
	now := time.Now()
	t.shook.Store(&now)
}

func (t *taken) shaken(_ tls.ConnectionState, err error) {
	if since := t.shook.Load(); err == nil && since != nil {
		t.note.phase(phaseTLS, *since)
	}
}

// take looks at an idle connection. One that the server has closed is closed on this side too, so
// that nothing is written to it.
func (t *taken) take(info httptrace.GotConnInfo) {
	t.conn, t.at = nil, time.Now()
	if !info.Reused || !t.looks {
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
	if !t.conn.peeker.alive(t.conn.Conn) {
		_ = t.conn.Close()
	}
}

// unused reports whether the request got a kept connection and wrote nothing to it.
func (t *taken) unused() bool { return t.conn != nil && t.conn.written.Load() == t.written }
