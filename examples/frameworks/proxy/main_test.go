package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/examples/frameworks/internal/exercise"
	"github.com/spillway-go/spillway/limiter"
)

// A backend that dies within an answer makes ReverseProxy panic. Its good answers are
// short: of a long one the client has everything before the handler ends, and the slot
// may still be in use when the next request comes.
func TestShedsAndRecovers(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write(make([]byte, 50_000))
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write([]byte("order 7"))
	}))
	defer backend.Close()
	exercise.HTTP(t, func(lim *limiter.Limiter) (http.Handler, error) { return handler(lim, backend.URL) }, exercise.Cut)
}

// What the backend refuses reaches the client as the backend said it, and a priority
// that a client made up does not reach the backend.
func TestRefusalsOfTheBackendGoThrough(t *testing.T) {
	forged := false
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forged = forged || r.Header.Get(admissionhttp.HeaderPriority) != ""
		w.Header().Set("Retry-After", "7")
		w.Header().Set(admissionhttp.HeaderReason, "memory")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer backend.Close()
	lim, err := limiter.New(limiter.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := handler(lim, backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/orders/7", nil)
	r.Header.Set(admissionhttp.HeaderPriority, "critical")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "7" || w.Header().Get(admissionhttp.HeaderReason) != "memory" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if forged {
		t.Error("the backend was told a priority that the client made up")
	}
}

// What the backend did not answer in time was answered 503 with Retry-After, as if it had been refused.
func TestOnlyARefusalIsAnsweredAsOne(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
		after  bool
	}{
		"refused by the transport":      {fmt.Errorf("sent: %w", &spillway.Rejection{Reason: spillway.ReasonSignal}), http.StatusServiceUnavailable, true},
		"ended by its deadline":         {fmt.Errorf("sent: %w", context.DeadlineExceeded), http.StatusGatewayTimeout, false},
		"ended by a timeout of the net": {fmt.Errorf("dial: %w", os.ErrDeadlineExceeded), http.StatusGatewayTimeout, false},
		"given up by its client":        {context.Canceled, http.StatusBadGateway, false},
		"failed":                        {io.ErrUnexpectedEOF, http.StatusBadGateway, false},
	} {
		w := httptest.NewRecorder()
		unreachable(w, httptest.NewRequest(http.MethodGet, "/orders/7", nil), c.err)
		if after := w.Header().Get("Retry-After") != ""; w.Code != c.status || after != c.after {
			t.Errorf("%s: %d, Retry-After: %v", name, w.Code, after)
		}
	}
}
