package admissionhttp_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
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

func (s *sink) Header() http.Header               { return s.header }
func (s *sink) WriteHeader(status int)            { s.status = status }
func (s *sink) Write(p []byte) (int, error)       { return len(p), nil }
func (s *sink) WriteString(t string) (int, error) { return len(t), nil }
func (s *sink) Flush()                            {}

var nothing = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// cases returns handlers to measure the cost of a request: compare with bare.
func cases(t testing.TB) map[string]http.Handler {
	full := one(t)
	must(full.Acquire(t.Context()))
	adaptive := must(limiter.New(limiter.Config{}))
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

// wholeSink has the interfaces of net/http's HTTP/1 writer.
type wholeSink struct{ sink }

func (s *wholeSink) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }
func (s *wholeSink) CloseNotify() <-chan bool                     { return nil }
func (s *wholeSink) ReadFrom(io.Reader) (int64, error)            { return 0, nil }
func (s *wholeSink) SetWriteDeadline(time.Time) error             { return nil }

// bottomless is a body without an end.
type bottomless struct{}

func (bottomless) Read(p []byte) (int, error) { return len(p), nil }
func (bottomless) Close() error               { return nil }

// A body, and an answer that the client may be slow to take, cost no allocation more.
func TestAllocsOfABodyAndALongAnswer(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	lim := must(limiter.New(limiter.Config{}))
	buffer, text := make([]byte, 100<<10), strings.Repeat("x", 100<<10)
	h := middleware(t, admissionhttp.Config{Limiter: lim})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = r.Body.Read(buffer)
		_, _ = w.Write(buffer)
		_, _ = io.WriteString(w, text)
	}))
	r, w := httptest.NewRequest(http.MethodPost, "/patients/7", nil), &wholeSink{sink{header: http.Header{}}}
	r.Body = bottomless{}
	if n := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}
