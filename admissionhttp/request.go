package admissionhttp

import (
	"context"
	"net/http"

	"github.com/spillway-go/spillway"
)

// Probe reports whether r is a GET or HEAD of a path by which platforms ask for
// health or metrics: /livez, /readyz, /healthz, /health, /startupz or /metrics. They
// are never refused by default, so a client that can reach them may call them without a
// bound: keep what is expensive off these paths, or on a listener of its own.
func Probe(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	switch r.URL.Path {
	case "/livez", "/readyz", "/healthz", "/health", "/startupz", "/metrics":
		return true
	}
	return false
}

// longestAccept is how much of what a client accepts is read. In HTTP/2 it can say a
// megabyte of that with every request and send a few kilobytes.
const longestAccept = 1 << 10

// announced reports whether r asks for a stream or another protocol.
func announced(r *http.Request) bool {
	if r.Method == http.MethodConnect || len(r.Header["Upgrade"]) > 0 {
		return true
	}
	left := longestAccept
	for _, line := range r.Header["Accept"] {
		if left -= len(line); left < 0 {
			return false
		}
		if accepts(line) {
			return true
		}
	}
	return false
}

// WithPriority returns h for requests of a priority: what a route says to a
// middleware inside of it, and to every limiter that the work passes.
func WithPriority(p spillway.Priority, h http.Handler) http.Handler {
	present(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		with(spillway.WithPriority(r.Context(), p), r, func(r *http.Request) { h.ServeHTTP(w, r) })
	})
}

// with calls serve with a copy of r that has ctx. What a router and a form write
// into the copy is for those outside too: the pattern for their labels, and the
// form for net/http, which removes its files.
func with(ctx context.Context, r *http.Request, serve func(*http.Request)) {
	inner := r.WithContext(ctx)
	defer func() { r.Pattern, r.MultipartForm = inner.Pattern, inner.MultipartForm }()
	serve(inner)
}
