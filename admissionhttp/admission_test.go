package admissionhttp_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// one is a limiter of a single slot and no queue.
func one(t testing.TB) *limiter.Limiter {
	t.Helper()
	lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(1), QueueSize: -1}))
	return lim
}

func middleware(t testing.TB, cfg admissionhttp.Config) func(http.Handler) http.Handler {
	t.Helper()
	m := must(admissionhttp.New(cfg))
	return m
}

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })

func TestWhatIsAdmittedIsServedAndWhatIsNotIsAnswered(t *testing.T) {
	lim := one(t)
	h := middleware(t, admissionhttp.Config{Limiter: lim})(ok)
	if w := get(h, "/"); w.Code != 200 || w.Body.String() != "ok" {
		t.Fatalf("%d %q", w.Code, w.Body)
	}
	permit := must(lim.Acquire(t.Context()))
	w := get(h, "/")
	if w.Code != 503 || w.Header().Get("Retry-After") == "" ||
		w.Header().Get(admissionhttp.HeaderReason) != spillway.ReasonQueueFull.String() ||
		w.Header().Get("Content-Type") != "application/problem+json" {
		t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if w := get(h, "/healthz"); w.Code != 200 {
		t.Fatalf("probe: %d", w.Code)
	}
	permit.Release()
	if w := get(h, "/"); w.Code != 200 {
		t.Fatalf("%d", w.Code)
	}
	if s := lim.Stats(); s.InFlight != 0 || s.Admitted != s.Completed {
		t.Fatalf("%+v", s)
	}
}

// must returns v, and panics if there is an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// check ends the test if there is an error.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
