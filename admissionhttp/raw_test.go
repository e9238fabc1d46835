package admissionhttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/spillway-go/spillway/admissionhttp"
)

// For any form of a refused request, the answer is complete and has a length. The body of the
// request is never taken for the next request.
func TestTheBodyOfARefusedRequestIsNeverARequest(t *testing.T) {
	lim := one(t)
	permit := must(lim.Acquire(t.Context()))
	defer permit.Release()
	var answered atomic.Int64
	protected := middleware(t, admissionhttp.Config{Limiter: lim})(ok)
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hidden" {
			t.Error("a body was served")
		}
		answered.Add(1)
		protected.ServeHTTP(w, r)
	}))
	const hidden = "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"
	const last = "GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	for name, c := range map[string]struct {
		raw, method string
		answers     int64 // including the answer to last
	}{
		"GET":             {"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + last, "GET", 2},
		"HEAD":            {"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n" + last, "HEAD", 2},
		"a short body":    {fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(hidden), hidden) + last, "POST", 2},
		"chunks":          {fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden) + last, "POST", 1},
		"expects to wait": {fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(hidden)) + hidden, "POST", 1},
		"1.0":             {"GET / HTTP/1.0\r\n\r\n" + last, "GET", 1},
		"1.0 stays":       {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + last, "GET", 2},
		"1.0 with a body": {fmt.Sprintf("POST / HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s", len(hidden), hidden) + last, "POST", 1},
	} {
		t.Run(name, func(t *testing.T) {
			before := answered.Load()
			conn := must(net.Dial("tcp", s.Listener.Addr().String()))
			defer conn.Close()
			go func() { _, _ = io.WriteString(conn, c.raw) }()
			in := bufio.NewReader(conn)
			for i := range c.answers {
				method := "GET"
				if i == 0 {
					method = c.method
				}
				resp, err := http.ReadResponse(in, &http.Request{Method: method})
				if err != nil {
					t.Fatalf("answer %d: %v", i, err)
				}
				body, err := io.ReadAll(resp.Body)
				if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || err != nil || resp.ContentLength <= 0 ||
					(int64(len(body)) != resp.ContentLength) != (method == "HEAD") {
					t.Errorf("answer %d: %d %v %q %v", i, resp.StatusCode, resp.Header, body, err)
				}
			}
			if more, err := in.ReadByte(); err == nil { // the connection is closed or reset
				t.Errorf("%q comes after the answers", more)
			}
			if n := answered.Load() - before; n != c.answers {
				t.Errorf("%d requests were seen, want %d", n, c.answers)
			}
		})
	}
}
