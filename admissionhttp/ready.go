package admissionhttp

import (
	"fmt"
	"net/http"
	"reflect"
	"sync/atomic"
)

// Ready answers a readiness probe: 200 while all arguments are open, and 503 once one is not, such
// as a *limiter.Limiter that drains or is closed. Ready ignores the load: to send the share of a
// full instance to other instances does not help. Ready panics if an argument is nil.
func Ready(of ...interface{ Open() bool }) http.Handler {
	for i, o := range of {
		if v := reflect.ValueOf(o); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			panic(fmt.Sprintf("admissionhttp: Ready: number %d is nil: look at the error of its constructor", i))
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status, text := http.StatusOK, "ready\n"
		for _, o := range of {
			if !o.Open() {
				status, text = http.StatusServiceUnavailable, "not ready\n"
			}
		}
		w.Header()["Cache-Control"] = noStore
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	})
}

// Switch tells Ready whether the process has started and still wants traffic. Neither the limiters
// nor the load show that. The zero Switch is not open.
type Switch struct{ on atomic.Bool }

// Set opens or closes the Switch.
func (s *Switch) Set(open bool) { s.on.Store(open) }

// Open reports whether the Switch is open.
func (s *Switch) Open() bool { return s.on.Load() }
