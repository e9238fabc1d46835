package admissionhttp

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
)

// kindOf returns the kind of r, or "" if no kind is known.
func (g *guard) kindOf(ctx context.Context, to *router, r *http.Request) (kind string) {
	if g.kind == nil && r.Pattern == "" && to.mux == nil || g.lim != nil && g.lim.Mode() == limiter.Off {
		return ""
	}
	if g.kind != nil {
		kind = g.kind(r)
	}
	if kind == "" && spillway.KindFrom(ctx) == "" { // otherwise the limiter takes the kind of the context
		if kind = route(r.Pattern); kind == "" && to.mux != nil {
			kind = to.ask(r)
		}
	}
	return kind
}

// route returns pattern, or "" if pattern matches all paths below a path. Other routers write such
// a pattern with a star.
func route(pattern string) string {
	for _, all := range []string{"/", "...}", "*"} {
		if strings.HasSuffix(pattern, all) {
			return ""
		}
	}
	return pattern
}

// router asks a mux for the routes of requests that the mux has not served yet.
type router struct {
	mux  *http.ServeMux // nil: the handler is no mux
	vain atomic.Uint32  // requests since the last one with a route
}

// A mux allocates several times to find that a path has no route, and some muxes have no route but
// "/".
const (
	muchVain = 64 // requests without a route in a row before the router asks less often
	askAgain = 16 // then the router asks for one in askAgain requests
)

// ask returns the route that r will have, or "".
func (m *router) ask(r *http.Request) string {
	if n := m.vain.Load(); n >= muchVain && n%askAgain > 0 {
		m.vain.Add(1)
		return ""
	}
	_, pattern := m.mux.Handler(r)
	pattern = route(pattern)
	if pattern == "" {
		m.vain.Add(1)
	} else if m.vain.Load() > 0 {
		m.vain.Store(0)
	}
	return pattern
}
