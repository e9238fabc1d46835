package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/examples/frameworks/internal/exercise"
	"github.com/spillway-go/spillway/limiter"
)

// A backend that dies within an answer makes ReverseProxy panic.
func TestShedsAndRecovers(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100000")
		if r.URL.Path == "/broken" {
			_, _ = w.Write(make([]byte, 50_000))
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(make([]byte, 100_000))
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
