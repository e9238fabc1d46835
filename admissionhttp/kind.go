package admissionhttp

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
)

// kindOf returns of which kind r is, or "" if nothing is known.
func (g *guard) kindOf(ctx context.Context, to *router, r *http.Request) (kind string) {
	if g.lim != nil && g.lim.Mode() == limiter.Off {
		return ""
	}
	if g.kind != nil {
		kind = g.kind(r)
	}
	if kind == "" && spillway.KindFrom(ctx) == "" { // else the limiter takes that of the context
		if kind = route(r.Pattern); kind == "" && to.mux != nil {
			kind = to.ask(r)
		}
	}
	return kind
}

// route returns a pattern, or "" if it is one for all paths below one. Other routers write
// such a pattern with a star.
func route(pattern string) string {
	for _, all := range []string{"/", "...}", "*"} {
		if strings.HasSuffix(pattern, all) {
			return ""
		}
	}
	return pattern
}

// router asks a mux for the routes of requests that it has not served yet.
type router struct {
	mux  *http.ServeMux // nil: the handler is none
	vain atomic.Uint32  // requests since one that had a route
}

// A mux allocates several times to find that a path has no route, and some have no routes but "/".
const (
	muchVain = 64 // requests without a route one after the other: from then on
	askAgain = 16 // one in so many is asked for
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
