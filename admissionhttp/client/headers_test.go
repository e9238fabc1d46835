package client_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/admissionhttp/client"
)

// The middleware reads the headers that a Transport sends.
func TestTheMiddlewareReadsTheHeaders(t *testing.T) {
	admit, err := admissionhttp.New(admissionhttp.Config{Trusted: func(*http.Request) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	var got context.Context
	server := httptest.NewServer(admit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Context() })))
	defer server.Close()
	transport, err := client.New(client.Config{Base: server.Client().Transport})
	if err != nil {
		t.Fatal(err)
	}
	for _, timeout := range []time.Duration{0, time.Hour, 1000 * time.Hour} {
		for p := spillway.Low; p <= spillway.Critical; p++ {
			ctx, cancel := spillway.WithPriority(t.Context(), p), context.CancelFunc(func() {})
			if timeout > 0 {
				ctx, cancel = context.WithTimeout(ctx, timeout)
			}
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := transport.RoundTrip(req)
			cancel()
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatal(resp, err)
			}
			_ = resp.Body.Close()
			end, has := got.Deadline()
			if spillway.PriorityFrom(got) != p || has != (timeout > 0) || has && end.After(time.Now().Add(timeout)) {
				t.Errorf("%v with %v arrives as %v, deadline %v", p, timeout, spillway.PriorityFrom(got), has)
			}
		}
	}
}
