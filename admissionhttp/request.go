package admissionhttp

import (
	"context"
	"net/http"

	"github.com/spillway-go/spillway"
)

// longestAccept bounds how many bytes of Accept headers are read. In HTTP/2 a client can give a
// megabyte of them with every request by sending a few kilobytes.
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

// WithPriority returns h with priority p for its requests, for a middleware and for every limiter
// inside of h:
//
//	mux.Handle("POST /orders", admissionhttp.WithPriority(spillway.Critical, admit(order)))
//
// A middleware outside, such as admit(mux), has decided before WithPriority runs, without p, and admit
// inside then passes its requests on. Around a whole mux, set Config.Priority instead.
func WithPriority(p spillway.Priority, h http.Handler) http.Handler {
	present(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		with(spillway.WithPriority(r.Context(), p), r, func(r *http.Request) { h.ServeHTTP(w, r) })
	})
}

// with calls serve with a copy of r that has ctx. Values that a router and a form write into the
// copy are also needed outside: the pattern for labels, and the form for net/http, which removes
// its files.
func with(ctx context.Context, r *http.Request, serve func(*http.Request)) {
	inner := r.WithContext(ctx)
	defer func() { r.Pattern, r.MultipartForm = inner.Pattern, inner.MultipartForm }()
	serve(inner)
}
