package route

import (
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limiter"
)

// A client that stops in the middle of its body is answered soon, although net/http reads the rest
// of the body before it answers.
func TestAClientThatStopsSendingIsAnswered(t *testing.T) {
	const most = 3 * time.Second
	type in struct {
		A int `json:"a"`
	}
	head := func(media, length string) string {
		return "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: " + media + "\r\n" + length + "\r\n\r\n"
	}
	for _, c := range []struct{ name, sent, want string }{
		{"in the body", head("application/json", "Content-Length: 7") + `{"a"`, "408"},
		{"in a chunk", head("application/json", "Transfer-Encoding: chunked") + "7\r\n{\"a\"", "408"},
		{"past the limit", head("application/json", "Transfer-Encoding: chunked") + "40\r\n" + strings.Repeat(" ", 64) + "\r\n", "413"},
		{"of a body that is too large", head("application/json", "Content-Length: 1000") + `{"a"`, "413"},
		{"of a body that nobody reads", head("application/pdf", "Content-Length: 7") + `{"a"`, "415"},
		{"of a refused request", head("application/json", "Content-Length: 7") + `{"a"`, "503"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := New("POST", "/", func(context.Context, in) (Empty, error) { return Empty{}, nil }).Limits(Limits{Read: most, Body: 32})
				if c.want == "503" {
					closed := must(limiter.New(limiter.Config{}))
					closed.Close()
					r.Limiter(closed)
				}
				h := must(r.Handler(Config{}))
				listener := pipes{make(chan net.Conn), make(chan struct{})}
				server := &http.Server{Handler: h}
				go func() { _ = server.Serve(listener) }()
				client, conn := net.Pipe()
				listener.conns <- conn
				go func() { _, _ = io.WriteString(client, c.sent) }()
				start := time.Now()
				_ = client.SetReadDeadline(start.Add(time.Minute))
				answer, err := io.ReadAll(client)
				if took := time.Since(start); !strings.HasPrefix(string(answer), "HTTP/1.1 "+c.want) || err != nil || took > most {
					t.Errorf("after %v: %q, %v", took, answer, err)
				}
				_ = client.Close()
				_ = server.Close()
			})
		})
	}
}

func TestNoLimitOfTheBodyIsTooLarge(t *testing.T) {
	s := serving(t, func(f func(context.Context, keeper) (Empty, error)) *Route {
		return New("POST", "/", f).Limits(Limits{Body: math.MaxInt64})
	}, Config{})
	for _, length := range []int64{14, -1} {
		h := newHarness("POST", "/", "application/json", `{"name":"Ada"}`)
		h.request.ContentLength = length
		if h.run(s); h.status != 204 {
			t.Error(h.status)
		}
	}
}
