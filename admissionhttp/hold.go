package admissionhttp

import (
	"context"
	"errors"
	"net/http"
	"sync"
)

type workKey struct{}

// Hold keeps the slot of a request while work for the request continues after the middleware has
// returned: in a goroutine that the handler left behind, or in a handler that http.TimeoutHandler
// no longer waits for. Call Hold before the handler returns, and release when the work has ended:
//
//	defer admissionhttp.Hold(r.Context())()
//
// The slot is free when all its holders have released it; the time until then is the sample.
// Release may be called more than once. Without [Config.Hold], and for a request that holds no
// slot, Hold does nothing.
func Hold(ctx context.Context) (release func()) {
	w, _ := ctx.Value(workKey{}).(*work)
	if w == nil || !w.hold() {
		return func() {}
	}
	return sync.OnceFunc(func() {
		if w.held.Add(-1) == 0 {
			if err := ctx.Err(); errors.Is(err, context.DeadlineExceeded) {
				w.outcome = err // the timeout, and not an answer, ended the work
			}
			w.settle()
		}
	})
}

// Held returns a handler that runs h and holds the slot until h returns. Use Held for handlers
// inside of http.TimeoutHandler.
func Held(h http.Handler) http.Handler {
	present(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer Hold(r.Context())()
		h.ServeHTTP(w, r)
	})
}

// hold adds a holder, unless all have ended.
func (w *work) hold() bool {
	for {
		n := w.held.Load()
		if n == 0 {
			return false
		}
		if w.held.CompareAndSwap(n, n+1) {
			return true
		}
	}
}
