package admissionhttp

import (
	"fmt"
	"net/http"
)

// Ready answers a readiness probe: 200 while all arguments report true, and 503 once one does not:
//
//	var up atomic.Bool // true between the start and the stop: neither the limiter nor the load show these
//	mux.Handle("GET /readyz", admissionhttp.Ready(up.Load, lim.Open))
//
// Open of a *limiter.Limiter reports false once the limiter drains or is closed. Ready ignores the
// load: to send the share of a full instance to other instances does not help. Ready calls each
// argument once, so that one that is nil, or has a nil receiver, panics while the program starts.
func Ready(open ...func() bool) http.Handler {
	for i, is := range open {
		if is == nil {
			panic(fmt.Sprintf("admissionhttp: Ready: number %d is nil", i))
		}
		is()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status, text := http.StatusOK, "ready\n"
		for _, is := range open {
			if !is() {
				status, text = http.StatusServiceUnavailable, "not ready\n"
			}
		}
		w.Header()["Cache-Control"] = noStore
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	})
}
