package admissionhttp

import (
	"context"
	"errors"
	"net/http"
	"sync"
)

// scope is the context of a handler and names the work of the request. To be part of the work, scope
// needs no allocation.
type scope struct {
	context.Context
	work *work
}

type (
	workKey struct{} // for the nearest work
	holdKey struct{} // for the nearest work with Config.Hold
)

func (s *scope) Value(key any) any {
	switch {
	case key == workKey{}, key == holdKey{} && s.work.guard.hold:
		return s.work
	}
	return s.Context.Value(key)
}

// admitted reports whether the request already holds a slot of the limiter that g would ask, through
// a middleware outside. A second slot would be waited for with the first one held. Code between that
// hides its writer also hides the work, unless the work has a scope.
func (g *guard) admitted(ctx context.Context, w http.ResponseWriter, class string) bool {
	for below := w; below != nil; {
		switch b := below.(type) {
		case interface{ self() *work }:
			if b.self().slotOf(g, class) {
				return true
			}
			below = b.self().ResponseWriter
		case interface{ Unwrap() http.ResponseWriter }:
			below = b.Unwrap()
		default:
			below = nil
		}
	}
	o, _ := ctx.Value(workKey{}).(*work)
	return o != nil && (o.slotOf(g, class) || g.admitted(o.scope.Context, o.ResponseWriter, class))
}

// self returns w for the writers that embed w.
func (w *work) self() *work { return w }

// slotOf reports whether w has not ended and was admitted by the limiter of g and class.
func (w *work) slotOf(g *guard, class string) bool {
	return w.guard.lim == g.lim && w.guard.keyed == g.keyed && w.class == class && w.held.Load() > 0
}

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
	w, _ := ctx.Value(holdKey{}).(*work)
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
