package loadgen

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// scripted starts a server that passes each connection, with its number, to serve. It returns the
// URL and a count of the connections.
func scripted(t testing.TB, serve func(n int64, c net.Conn)) (string, *atomic.Int64) {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	var connections atomic.Int64
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := connections.Add(1)
			all.Go(func() {
				defer c.Close()
				serve(n, c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return "http://" + l.Addr().String(), &connections
}

// frugal is a server without any allocation. It answers every request with a hello; requests must
// have no body.
func frugal(t testing.TB) string {
	end, answer := []byte("\r\n\r\n"), []byte(ok200+"Content-Length: 5\r\n\r\nhello")
	url, _ := scripted(t, func(_ int64, c net.Conn) {
		buf := make([]byte, 4096)
		for n := 0; ; {
			k, err := c.Read(buf[n:])
			if err != nil {
				return
			}
			if n += k; bytes.HasSuffix(buf[:n], end) {
				if _, err := c.Write(answer); err != nil {
					return
				}
				n = 0
			}
		}
	})
	return url
}

// answering answers the requests of a connection by a script, and closes the connection after the
// last answer. An empty answer closes it at once.
func answering(c net.Conn, answers ...string) {
	r := bufio.NewReader(c)
	for _, answer := range answers {
		request, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			return
		}
		_, _ = io.WriteString(c, answer)
	}
}

const hello = ok200 + "Content-Length: 5\r\n\r\nhello"

func TestARequestOnAConnectionThatWasClosedIsSentAgainOnlyIfThatIsSafe(t *testing.T) {
	for _, c := range []struct {
		method, second string
		want           Outcome
		connections    int64
		says           string
	}{
		{"GET", "", OK, 2, ""},
		{"PUT", "", OK, 2, ""},
		{"POST", "", Error, 1, "closed the connection before it answered"},
		{"GET", "HTTP/1.1 200", Error, 1, "unexpected EOF"},
		{"GET", ok200 + "Content-Length: 5\r\n\r\nhell", Error, 1, "reading the body: unexpected EOF"},
	} {
		url, connections := scripted(t, func(_ int64, nc net.Conn) { answering(nc, hello, c.second) })
		h := newHTTP(t, HTTPConfig{URL: url, Method: c.method})
		if o := h.Do(t.Context(), 0); o != OK {
			t.Fatalf("%v: %v", o, h.FirstError())
		}
		if o := h.Do(t.Context(), 1); o != c.want || connections.Load() != c.connections {
			t.Errorf("%s, then %q: %v over %d connections, %v", c.method, c.second, o, connections.Load(), h.FirstError())
		}
		if err := h.FirstError(); c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s, then %q: %v, want %q", c.method, c.second, err, c.says)
		}
		h.Close()
	}
}

func TestAnAnswerMayBeThereBeforeTheRequest(t *testing.T) {
	sent := make(chan struct{})
	url, _ := scripted(t, func(_ int64, c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		_ = c.(*net.TCPConn).CloseWrite()
		close(sent)
		_, _ = io.Copy(io.Discard, c) // closing with unread bytes could destroy the answer
	})
	h := newHTTP(t, HTTPConfig{URL: url, Timeout: time.Minute})
	dial := h.raw.dial
	h.raw.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		<-sent
		return c, err
	}
	if o := h.Do(t.Context(), 0); o != Rejected {
		t.Errorf("%v, %v", o, h.FirstError())
	}
}

func TestANewConnectionThatGivesNoAnswerIsNotTriedAgain(t *testing.T) {
	url, connections := scripted(t, func(_ int64, c net.Conn) { answering(c, "") })
	h := newHTTP(t, HTTPConfig{URL: url})
	if o := h.Do(t.Context(), 0); o != Error || connections.Load() != 1 {
		t.Errorf("%v over %d connections", o, connections.Load())
	}
}

func TestConnectionsAreKeptOnlyWhereTheAnswerAllowsIt(t *testing.T) {
	for _, c := range []struct {
		method, answer string
		header         http.Header
		keeps          bool
	}{
		{"GET", hello, nil, true},
		{"HEAD", ok200 + "Content-Length: 5\r\n\r\n", nil, true},
		{"GET", "HTTP/1.1 204 No Content\r\n\r\n", nil, true},
		{"GET", "HTTP/1.1 100 Continue\r\n\r\n" + hello, nil, true},
		{"GET", ok200 + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", nil, true},
		{"GET", hello, http.Header{"Connection": {"Close"}}, false},
		{"GET", ok200 + "Connection: close\r\nContent-Length: 5\r\n\r\nhello", nil, false},
		{"GET", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", nil, false},
		{"GET", hello + "unasked", nil, false},
	} {
		url, connections := scripted(t, func(_ int64, nc net.Conn) { answering(nc, c.answer, c.answer) })
		h := newHTTP(t, HTTPConfig{URL: url, Method: c.method, Header: c.header})
		for n := range uint64(2) {
			if o := h.Do(t.Context(), n); o != OK {
				t.Fatalf("%q: %v, %v", c.answer, o, h.FirstError())
			}
		}
		if kept := connections.Load() == 1; kept != c.keeps {
			t.Errorf("%s %q: %d connections for two requests", c.method, c.answer, connections.Load())
		}
		h.Close()
	}
}

func TestTheEndOfTheContextInterruptsARequestAndNoOther(t *testing.T) {
	arrived := make(chan struct{})
	s, connections := newServer(t, false, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			arrived <- struct{}{}
			<-r.Context().Done()
		}
	})
	h := newHTTP(t, HTTPConfig{URLFor: func(n uint64) string { return s.URL + []string{"/", "/hang"}[n%2] }})
	ctx, cancel := context.WithCancel(t.Context())
	if o := h.Do(ctx, 0); o != OK {
		t.Fatal(h.FirstError())
	}
	go func() {
		<-arrived
		cancel()
	}()
	if o := h.Do(ctx, 1); o != Error || h.FirstError() != nil {
		t.Errorf("interrupted: %v, %v", o, h.FirstError())
	}
	if o := h.Do(ctx, 2); o != Error {
		t.Errorf("with a context that has ended: %v", o)
	}
	// Contexts that end after their own request do not harm the next request.
	for n := range uint64(50) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if o := h.Do(ctx, 2*n); o != OK {
			t.Fatalf("request %d: %v", n, h.FirstError())
		}
		cancel()
	}
	if n := connections.Load(); n != 2 {
		t.Errorf("%d connections, want the interrupted one and another", n)
	}
}

func TestATimeoutCoversTheWaitForAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := must(NewHTTP(HTTPConfig{URL: "http://server", Timeout: time.Second, MaxConns: 1}))(t)
		h.raw.dial = func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, server) }() // the server never answers
			return client, nil
		}
		begin := time.Now()
		var all sync.WaitGroup
		for n := range uint64(3) {
			all.Go(func() {
				if o := h.Do(t.Context(), n); o != Timeout || time.Since(begin) != time.Second {
					t.Errorf("%v after %v, want a timeout after 1s: %v", o, time.Since(begin), h.FirstError())
				}
			})
		}
		all.Wait()
	})
}

func TestAConnectionThatWasIdleLongIsAskedFirst(t *testing.T) {
	closed := make(chan struct{})
	url, connections := scripted(t, func(n int64, c net.Conn) {
		if answering(c, hello); n == 1 {
			_ = c.Close()
			close(closed)
		}
	})
	h := newHTTP(t, HTTPConfig{URL: url, Method: "POST"}) // a POST may not be sent again
	if o := h.Do(t.Context(), 0); o != OK {
		t.Fatal(h.FirstError())
	}
	<-closed
	h.raw.idle[0].used = time.Now().Add(-time.Minute)
	if _, isKnown := h.raw.idle[0].Conn.(*net.TCPConn); !isKnown || h.raw.idle[0].quiet() {
		t.Skip("this platform does not say whether a connection is open")
	}
	if o := h.Do(t.Context(), 1); o != OK || connections.Load() != 2 {
		t.Errorf("%v over %d connections: %v", o, connections.Load(), h.FirstError())
	}
}

func TestBothWaysSendTheSameRequest(t *testing.T) {
	seen := make(chan string, 1)
	s, _ := newServer(t, false, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var lines []string
		for name, values := range r.Header {
			lines = append(lines, fmt.Sprint(name, values))
		}
		slices.Sort(lines)
		seen <- fmt.Sprint(r.Method, r.RequestURI, r.Host, lines, r.ContentLength, string(body))
	})
	data := must(ReadCSV(strings.NewReader("id,note\nP1,a b\n\"P/2\",ü&\n")))(t)
	to := func(rest string) func(uint64) string { return func(uint64) string { return s.URL + rest } }
	for i, cfg := range []HTTPConfig{
		{URL: s.URL},
		{URL: s.URL + "/a%20b/ü?x=1&y=%zz", Method: "DELETE"},
		{URL: s.URL + "?q={{n}}", Body: []byte("{{.id}}")},
		{URL: s.URL + "/p", Method: "POST"},
		{URL: s.URL, Method: "PUT", Header: http.Header{"host": {"other:80"}, "x-a": {"1", "2"}, "user-agent": {"me"}, "content-length": {"7"}, "connection": {"close"}}, Body: []byte("text")},
		{URLFor: to("")}, {URLFor: to("/x y")}, {URLFor: to("/a//b;c=(1)*'!$/@:?a=b&c=+~")}, {URLFor: to("/a%2fb?%zz")}, {URLFor: to("/a#b")}, {URLFor: to(`/"<>^|\`)},
		{URL: s.URL + "/{{ .id }}/x?note={{.note}}&n={{n}}", Method: "POST", Header: http.Header{"X-Note": {"is {{.note}}", "{{.n}}"}}, Body: []byte(`{"id":"{{.id}}"}`), Data: data},
		{URL: s.URL + "/fixed", Body: []byte(`{{.id}}`), Data: data.Drawn(7)},
		{URL: s.URL + "/big", Body: bytes.Repeat([]byte("x"), maxRawBody+1)},
	} {
		h := newHTTP(t, cfg)
		if (h.raw == nil) != (len(cfg.Body) > maxRawBody) {
			t.Errorf("%d: over its own connections: %v", i, h.raw != nil)
		}
		for n := range uint64(3) {
			var lines [2]string
			for way := range lines {
				if way == 1 {
					h.raw = nil
				}
				if o := h.Do(t.Context(), n); o != OK {
					t.Fatalf("%d: %v", i, h.FirstError())
				}
				lines[way] = <-seen
			}
			if lines[0] != lines[1] {
				t.Errorf("request %d of %d:\n%s\nover net/http:\n%s", n, i, lines[0], lines[1])
			}
			h.Close()
			h = newHTTP(t, cfg)
		}
	}
}

// Servers with a lingering close half-close after an answer. The next request once waited for an
// answer on the old connection.
func TestAServerMayHalfCloseAfterAnAnswer(t *testing.T) {
	url, _ := scripted(t, func(_ int64, c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	})
	h := newHTTP(t, HTTPConfig{URL: url, Timeout: time.Minute})
	for range 100 {
		if o := h.Do(t.Context(), 0); o != OK {
			t.Fatalf("%v, %v", o, h.FirstError())
		}
	}
}
