package admissionhttp_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limiter"
)

// sink is a reusable ResponseWriter.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) Flush()                      {}

var nothing = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// cases returns handlers to measure the cost of a request: compare with bare.
func cases(t testing.TB) map[string]http.Handler {
	full := one(t)
	if _, err := full.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	adaptive, err := limiter.New(limiter.Config{})
	if err != nil {
		t.Fatal(err)
	}
	with := func(cfg admissionhttp.Config) http.Handler { return middleware(t, cfg)(nothing) }
	return map[string]http.Handler{
		"bare":     nothing,
		"protect":  admissionhttp.Protect(nothing),
		"admitted": with(admissionhttp.Config{Limiter: adaptive}),
		"twice":    middleware(t, admissionhttp.Config{Limiter: adaptive})(with(admissionhttp.Config{Limiter: adaptive})),
		"hold":     with(admissionhttp.Config{Limiter: adaptive, Hold: true}),
		"deadline": with(admissionhttp.Config{
			Limiter: adaptive, Deadlines: map[spillway.Priority]time.Duration{spillway.Normal: 5 * time.Second},
		}),
		"shares":  with(admissionhttp.Config{Limiter: adaptive, FairShares: true}),
		"refused": with(admissionhttp.Config{Limiter: full}),
	}
}

func BenchmarkServe(b *testing.B) {
	for name, h := range cases(b) {
		b.Run(name, func(b *testing.B) {
			r, w := httptest.NewRequest(http.MethodGet, "/patients/7", nil), &sink{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}

func TestAllocsOfARequest(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	most := map[string]float64{"bare": 0, "protect": 1, "admitted": 1, "twice": 1, "refused": 0}
	for name, h := range cases(t) {
		limit, ok := most[name]
		if !ok {
			continue
		}
		r, w := httptest.NewRequest(http.MethodGet, "/patients/7", nil), &sink{header: http.Header{}}
		if n := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }); n > limit {
			t.Errorf("%s: %v allocations, at most %v", name, n, limit)
		}
	}
}
