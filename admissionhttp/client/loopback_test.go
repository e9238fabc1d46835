package client

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
)

// Over a real connection, a refused request is retried on the same connection. Once the server
// refuses everything, the error of http.Client shows the refusal.
func TestOverLoopback(t *testing.T) {
	var refuse, asked atomic.Int64
	refuse.Store(1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get(deadlineHeader) == "" {
			t.Error("the timeout of http.Client is not passed on")
		}
		if text, err := io.ReadAll(r.Body); err != nil || string(text) != "a body" {
			t.Errorf("the server read %q, %v", text, err)
		}
		if refuse.Add(-1) >= 0 {
			w.Header().Set("Retry-After", "0")
			http.Error(w, "overloaded", http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()

	tr := must(New(Config{Base: server.Client().Transport}))
	tr.stall = time.Hour // connections are reused, even after a slow answer
	c := &http.Client{Transport: tr, Timeout: time.Hour}
	defer c.CloseIdleConnections()
	var connections, reused int
	put := func() (int, error) {
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
			connections++
			if i.Reused {
				reused++
			}
		}})
		req := must(http.NewRequestWithContext(ctx, http.MethodPut, server.URL, strings.NewReader("a body")))
		resp, err := c.Do(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	if status, err := put(); status != 200 || err != nil || asked.Load() != 2 {
		t.Fatalf("%d %v after %d attempts", status, err, asked.Load())
	}
	if connections != 2 || reused != 1 {
		t.Errorf("%d connections, %d used again", connections, reused)
	}

	tr.attempts = 1
	refuse.Store(1 << 40)
	throttled := 0
	for range 200 {
		status, err := put()
		rej, isRejection := errors.AsType[*spillway.Rejection](err)
		switch {
		case err == nil && status == 503:
		case isRejection && rej.Reason == spillway.ReasonSignal && rej.Cause == throttledCause:
			throttled++
		default:
			t.Fatal(status, err)
		}
	}
	if n := int64(2 + 200 - throttled); throttled < 50 || asked.Load() != n {
		t.Errorf("%d of 200 were throttled, the server was asked %d times", throttled, asked.Load())
	}
}

// An answer of unknown length was once not read to its end, and its connection was closed. Each
// attempt then made a new connection to an overloaded server.
func TestAShortAnswerInChunksKeepsItsConnection(t *testing.T) {
	for name, write := range map[string]func(http.ResponseWriter){
		"in chunks": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "over")
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, "loaded")
		},
		"compressed": func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(http.StatusServiceUnavailable)
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, "overloaded")
			_ = z.Close()
		},
		"as long as a short one may be": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, strings.Repeat("x", shortAnswer))
		},
		"with a length": func(w http.ResponseWriter) {
			http.Error(w, "overloaded", http.StatusServiceUnavailable)
		},
		"without a body": func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
	} {
		for _, h2 := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", HTTP/2: ", h2), func(t *testing.T) {
				var asked, connections atomic.Int64
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if asked.Add(1) < 3 {
						write(w)
					}
				}))
				server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
					if s == http.StateNew {
						connections.Add(1)
					}
				}
				if server.EnableHTTP2 = h2; h2 {
					server.StartTLS()
				} else {
					server.Start()
				}
				defer server.Close()
				tr := must(New(Config{Base: server.Client().Transport}))
				tr.stall = time.Hour
				resp, err := (&http.Client{Transport: tr}).Get(server.URL)
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Fatal(resp, err)
				}
				_ = resp.Body.Close()
				if asked.Load() != 3 || connections.Load() != 1 {
					t.Errorf("%d attempts over %d connections", asked.Load(), connections.Load())
				}
			})
		}
	}
}

// A server that refuses and then hangs must not hold up the refused request. RoundTrip once waited
// for the rest of an unused answer, forever without a timeout.
func TestAnAnswerThatDoesNotEndIsNotWaitedFor(t *testing.T) {
	var asked atomic.Int64
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "some")
			_ = http.NewResponseController(w).Flush()
			<-hang
		}
	}))
	defer server.Close()
	defer close(hang)
	tr := must(New(Config{Base: server.Client().Transport}))
	resp, err := (&http.Client{Transport: tr}).Get(server.URL)
	if err != nil || resp.StatusCode != http.StatusOK || asked.Load() != 2 {
		t.Fatalf("%v %v, asked %d times", resp, err, asked.Load())
	}
	_ = resp.Body.Close()
}
