package admissionhttp

import (
	"net/http"

	"github.com/spillway-go/spillway/internal/debugpage"
	"github.com/spillway-go/spillway/limiter"
)

// DebugHandler serves a page about limiters, for people, in the spirit of net/http/pprof. The page
// shows live what is in flight and waiting, what is refused, fails or is late, and of which kind
// (spillway.WithKind; the middleware takes the route), what the limit is and why it changed, what to do, and
// the report of a dry run. ?format=json is Stats as JSON, with
// times in seconds.
//
// Like pprof, the handler belongs on its own listener: the page shows names and code positions, and
// has no access control. It works under any path, and needs no other file. Make the handler when
// the limiters are made: it knows ages of decisions only from then on. Nil limiters are skipped.
//
// The handler keeps two minutes: once a second, whoever uses one of the limiters reads them all,
// which delays that caller by up to a millisecond for each. Open pages are streams, sixteen at most,
// and share these readings. A stream ends with its request, and once every limiter is
// drained or closed. http.Server.Shutdown waits for streams: drain the limiters first, or cancel
// the server's BaseContext.
func DebugHandler(limiters ...*limiter.Limiter) http.Handler {
	return debugpage.New(limiters...)
}
