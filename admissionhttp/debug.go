package admissionhttp

import (
	"net/http"

	"github.com/spillway-go/spillway/internal/debugpage"
	"github.com/spillway-go/spillway/limiter"
)

// DebugHandler serves a page about limiters, for people, in the spirit of
// net/http/pprof: what is in flight and waiting, what is refused and why, how long work
// waits, what the limit is and why it changed, as it happens; and the report of a dry
// run. ?format=json is Stats as JSON, with times in seconds.
//
// Like pprof it belongs on a listener of its own: it shows names and code positions, and
// asks for no permission. It works under any path, and needs no other file. Make it when
// the limiters are made: it tells ages of decisions from then on. Nil limiters are
// skipped.
//
// Open pages are streams, sixteen at most. They look at the limiters once a second
// together; without a reader nothing runs. A stream ends with its request, and once
// every limiter is drained or closed. http.Server.Shutdown waits for streams: drain the
// limiters first, or cancel the server's BaseContext.
func DebugHandler(limiters ...*limiter.Limiter) http.Handler {
	return debugpage.New(limiters...)
}
