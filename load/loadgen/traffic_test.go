package loadgen

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// countingListener counts bytes in the same way, on the server's side.
type countingListener struct {
	net.Listener
	traffic *traffic
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countedConn{Conn: c, traffic: l.traffic}, nil
}

func TestBytesAreThoseThatTheServerSees(t *testing.T) {
	for name, c := range map[string]struct {
		withTLS, http2 bool
		body           int
	}{"short way": {body: 100}, "net/http": {body: maxRawBody + 1}, "TLS": {withTLS: true}, "HTTP/2": {http2: true}} {
		t.Run(name, func(t *testing.T) {
			var seen traffic
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, strings.Repeat("x", 10_000))
			}))
			s.Listener = countingListener{s.Listener, &seen}
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.Config.Protocols = new(http.Protocols)
			s.Config.Protocols.SetHTTP1(true)
			s.Config.Protocols.SetUnencryptedHTTP2(c.http2)
			if c.withTLS {
				s.StartTLS()
			} else {
				s.Start()
			}
			defer s.Close()
			h := newHTTP(t, HTTPConfig{URL: s.URL, Body: make([]byte, c.body), HTTP2: c.http2, TLS: &tls.Config{InsecureSkipVerify: true}})
			r := mustRun(t, t.Context(), Config{Target: h, Closed: &Closed{Clients: 2, Requests: 20}})
			if r.Outcomes[OK].Count != 20 {
				t.Fatal(h.FirstError())
			}
			h.Close()
			s.Close() // the server has read all bytes
			sent, received := h.Traffic()
			if least := uint64(20 * c.body); sent < least || received < 200_000 {
				t.Errorf("%d bytes sent, %d received", sent, received)
			}
			if !c.http2 && !c.withTLS && (sent != seen.received.Load() || received != seen.sent.Load()) {
				t.Errorf("%d sent and %d received, the server received %d and sent %d", sent, received, seen.received.Load(), seen.sent.Load())
			}
		})
	}
}
