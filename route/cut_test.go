package route

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// overTCP sends raw, closes its side of the connection, and returns the answer's status and body.
func overTCP(t *testing.T, h http.Handler, raw string) (status int, body string) {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	conn := must(net.Dial("tcp", server.Listener.Addr().String()))
	defer conn.Close()
	must(io.WriteString(conn, raw))
	check(t, conn.(*net.TCPConn).CloseWrite())
	resp := must(http.ReadResponse(bufio.NewReader(conn), nil))
	defer resp.Body.Close()
	answer := must(io.ReadAll(resp.Body))
	return resp.StatusCode, string(answer)
}

// net/http cancels the request when its body is cut, and answers 200 when a handler writes nothing.
// A client whose body was cut was therefore once told of success.
func TestABodyThatEndsEarlyIsAnswered400(t *testing.T) {
	type in struct {
		A int `json:"a"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
	for name, raw := range map[string]string{
		"Content-Length": "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{\"a\":1}",
		"chunked":        "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{\"a\":1}\r\n",
	} {
		if status, body := overTCP(t, s, raw); status != 400 || !strings.Contains(body, "incomplete-body") || s.calls > 0 {
			t.Errorf("%s: %d %q, handler called %d times", name, status, body, s.calls)
		}
	}
}

// A client that has sent its request may close its side and still read.
func TestAHalfClosedConnectionIsNeverAnswered200ByAccident(t *testing.T) {
	m := NewMux(Config{})
	check(t, m.Add(New("GET", "/", func(ctx context.Context, _ Empty) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})))
	if status, body := overTCP(t, m, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); status != 499 || !strings.Contains(body, `"status":499`) {
		t.Errorf("%d %q", status, body)
	}
}

// A body that no field needs has the same limits as other bodies: net/http would wait for the body
// before it sends the answer.
func TestABodyNoOperationReadsIsLimitedToo(t *testing.T) {
	const most = 3 * time.Second
	for _, c := range []struct{ name, sent, want string }{
		{"slow", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n{", "408"},
		{"large", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 33\r\nConnection: close\r\n\r\n" + strings.Repeat(" ", 33), "413"},
		{"in time", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", "204"},
		{"slow, no such path", "GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n{", "404"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				alive := true
				m := NewMux(Config{Limits: Limits{Read: most, Body: 32}})
				check(t, m.Add(New("GET", "/{$}", func(ctx context.Context, _ Empty) (Empty, error) {
					time.Sleep(2 * most) // the deadline was for the body, not for the handler
					alive = ctx.Err() == nil
					return Empty{}, nil
				})))
				listener := pipes{make(chan net.Conn), make(chan struct{})}
				server := &http.Server{Handler: m}
				go func() { _ = server.Serve(listener) }()
				client, conn := net.Pipe()
				listener.conns <- conn
				go func() { _, _ = io.WriteString(client, c.sent) }()
				start := time.Now()
				_ = client.SetReadDeadline(start.Add(time.Minute))
				answer, err := io.ReadAll(client)
				if took := time.Since(start); !strings.HasPrefix(string(answer), "HTTP/1.1 "+c.want) || err != nil || c.want != "204" && took > most || !alive {
					t.Errorf("after %v: %q, %v, context alive %t", took, answer, err, alive)
				}
				_ = client.Close()
				_ = server.Close()
			})
		})
	}
}

// If a header is sent twice, the intended value is unknown, and a proxy in front may choose the
// other one.
func TestAHeaderThatSaysHowToReadTheBodyIsGivenOnce(t *testing.T) {
	type in struct {
		A int `json:"a" form:"a"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route { return New("POST", "/", f) }, Config{Discreet: true})
	for _, c := range [][]string{
		{"Content-Type", "application/json", "Content-Type", "application/x-www-form-urlencoded"},
		{"Content-Type", "application/json", "Content-Type", "application/json"},
		{"Content-Type", "application/json", "Content-Encoding", "identity", "Content-Encoding", "gzip"},
	} {
		w := do(s, "POST", "/", "", `{"a":1}`, c...)
		want := `"errors":[{"detail":"is given more than once","parameter":"` + c[len(c)-2] + `","in":"header"}]`
		if w.Code != 400 || !strings.Contains(w.Body.String(), want) || s.calls > 0 {
			t.Errorf("%v: %d %s", c, w.Code, w.Body)
		}
	}
}
