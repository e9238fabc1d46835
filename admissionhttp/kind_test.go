package admissionhttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// classes is a law that records the class of the latest work.
type classes struct {
	limit.Law
	latest uint8
}

func (c *classes) Admit(_ time.Duration, load limit.Load) { c.latest = load.Class }

// kinds returns a middleware, and a function that sends a request of a method, path and context to
// a handler and returns the class that the limiter's law gets.
func kinds(t *testing.T, cfg admissionhttp.Config) (admit func(http.Handler) http.Handler, of func(h http.Handler, ctx context.Context, method, path string) uint8) {
	law := &classes{Law: limit.NewFixed(1)}
	lim := must(limiter.New(limiter.Config{Law: law}))
	cfg.Limiter = lim
	return middleware(t, cfg), func(h http.Handler, ctx context.Context, method, path string) uint8 {
		t.Helper()
		before := lim.Stats().Admitted
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, method, path, nil))
		if lim.Stats().Admitted != before+1 {
			t.Errorf("%s %s was not admitted", method, path)
		}
		return law.latest
	}
}

func routes(wrap func(http.Handler) http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	for _, pattern := range []string{"GET /orders/{id}", "POST /orders/{id}", "GET /reports", "/", "/files/", "/assets/{name...}"} {
		mux.Handle(pattern, wrap(ok))
	}
	return mux
}

func TestTheKindOfARequestIsItsRoute(t *testing.T) {
	asIs := func(h http.Handler) http.Handler { return h }
	ctx := t.Context()
	around, ofAround := kinds(t, admissionhttp.Config{})
	inside, ofInside := kinds(t, admissionhttp.Config{})
	nested, ofNested := kinds(t, admissionhttp.Config{})
	outer := http.NewServeMux()
	outer.Handle("/", nested(routes(asIs)))
	for name, is := range map[string]func(method, path string) uint8{
		"around a mux": func(method, path string) uint8 { return ofAround(around(routes(asIs)), ctx, method, path) },
		"inside a mux": func(method, path string) uint8 { return ofInside(routes(inside), ctx, method, path) },
		"between two":  func(method, path string) uint8 { return ofNested(outer, ctx, method, path) },
	} {
		read, write, report := is("GET", "/orders/1"), is("POST", "/orders/1"), is("GET", "/reports")
		if read == write || read == report || write == report {
			t.Errorf("%s: routes are one kind: %d, %d, %d", name, read, write, report)
		}
		if again := is("GET", "/orders/2"); again != read {
			t.Errorf("%s: a route is two kinds: %d, %d", name, read, again)
		}
		none := is("GET", "/nowhere")
		if none == read || none == write || none == report {
			t.Errorf("%s: what is no route is of kind %d", name, none)
		}
		// Routers and work of any kind may stand behind these patterns.
		for _, path := range []string{"/files/1", "/assets/a/b"} {
			if got := is("GET", path); got != none {
				t.Errorf("%s: %s is of kind %d, want %d: of none that is told", name, path, got, none)
			}
		}
	}
}

func TestTheContextAndTheFunctionSayTheKindBeforeTheRoute(t *testing.T) {
	admit, of := kinds(t, admissionhttp.Config{Kind: func(r *http.Request) string { return r.URL.Query().Get("kind") }})
	h := admit(routes(func(h http.Handler) http.Handler { return h }))
	ctx := t.Context()
	read, imports := of(h, ctx, "GET", "/orders/1"), of(h, ctx, "GET", "/orders/1?kind=import")
	if read == imports {
		t.Error("what the function says is not heard")
	}
	if got := of(h, ctx, "GET", "/reports?kind=import"); got != imports {
		t.Errorf("of two routes of which the function says the same, one is of kind %d, one %d", imports, got)
	}
	told := of(h, spillway.WithKind(ctx, "import"), "GET", "/reports")
	if told != imports {
		t.Errorf("the context says a kind, and it is %d, want %d", told, imports)
	}
	if got := of(h, spillway.WithKind(ctx, "import"), "GET", "/reports?kind=other"); got == imports {
		t.Error("the context goes before the function")
	}
}

// The kind of a request that is never limited is not looked up.
func TestWhatIsExemptIsOfNoKind(t *testing.T) {
	asked := 0
	lim := one(t)
	h := middleware(t, admissionhttp.Config{Limiter: lim, Kind: func(*http.Request) string { asked++; return "" }})(ok)
	if get(h, "/healthz"); asked != 0 {
		t.Error("the kind of a probe was asked for")
	}
	lim.SetMode(limiter.Off)
	if get(h, "/orders"); asked != 0 {
		t.Error("the limiter is off, and it was asked for the kind of a request")
	}
	lim.SetMode(limiter.Enforce)
	if get(h, "/orders"); asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

// Where a wildcard matches, the lookup of the route repeats the allocations of the mux.
func TestAllocsOfTheRoute(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	mux := http.NewServeMux()
	mux.Handle("GET /orders", nothing)
	mux.Handle("GET /orders/{id}", nothing)
	catchAll := http.NewServeMux()
	catchAll.Handle("/", nothing)
	exempt := func(h http.Handler) http.Handler {
		return middleware(t, admissionhttp.Config{Limiter: one(t), Exempt: func(*http.Request) bool { return true }})(h)
	}
	for _, c := range []struct {
		name    string
		mux     *http.ServeMux
		path    string
		protect func(http.Handler) http.Handler
		more    float64
	}{
		{"a route", mux, "/orders", admissionhttp.Protect, 1},
		{"a route with a wildcard", mux, "/orders/7", admissionhttp.Protect, 2},
		{"no routes but one", catchAll, "/orders", admissionhttp.Protect, 1},
		{"a route of a request that is never limited", mux, "/orders/7", exempt, 0},
	} {
		allocs := func(h http.Handler) float64 {
			r, w := httptest.NewRequest(http.MethodGet, c.path, nil), &sink{header: http.Header{}}
			serve := func() {
				r.Pattern = "" // as in a request from net/http
				h.ServeHTTP(w, r)
			}
			for range 100 {
				serve()
			}
			return testing.AllocsPerRun(1000, serve)
		}
		bare := allocs(c.mux)
		if got := allocs(c.protect(c.mux)); got > bare+c.more {
			t.Errorf("%s: %v allocations, at most %v, of which %v are the mux's", c.name, got, bare+c.more, bare)
		}
	}
}

// After many paths without a route, a route is found again.
func TestARouteIsToldAfterManyPathsWithoutOne(t *testing.T) {
	admit, of := kinds(t, admissionhttp.Config{})
	h, ctx := admit(routes(func(h http.Handler) http.Handler { return h })), t.Context()
	read := of(h, ctx, "GET", "/orders/1")
	for range 1000 {
		of(h, ctx, "GET", "/nowhere")
	}
	for i := range 20 {
		if of(h, ctx, "GET", "/orders/1") == read {
			if got := of(h, ctx, "GET", "/orders/2"); got != read {
				t.Errorf("once it is found it is not told: kind %d, want %d", got, read)
			}
			return
		} else if i == 16 {
			t.Fatal("not found again")
		}
	}
}
