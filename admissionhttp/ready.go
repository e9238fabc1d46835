package admissionhttp

import (
	"fmt"
	"net/http"
	"reflect"
	"sync/atomic"
)

// Ready answers a readiness probe: 200 while all are open, and 503 once one is not,
// as a *limiter.Limiter that drains or is closed. It never looks at the load: an
// instance that is full is not mended by sending its share to others. Ready panics if one
// of them is nil.
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

// Switch is for Ready what is neither a limiter's business nor the load's: whether
// the process has started, and whether it still wants traffic. The zero Switch is not
// open.
type Switch struct{ on atomic.Bool }

// Set opens or closes it.
func (s *Switch) Set(open bool) { s.on.Store(open) }

// Open reports whether it is open.
func (s *Switch) Open() bool { return s.on.Load() }
