package admissionhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// bounded runs h only with a permit of lim, streams included. It stands outside of admission, so
// its refusals are no samples for the limiter of admission.
func bounded(lim *limiter.Limiter, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		permit, err := lim.TryAcquire(r.Context())
		if admissionhttp.Refuse(w, r, err) {
			return
		}
		defer permit.Release()
		h.ServeHTTP(w, r)
	})
}

// Streams hold no slot of the service's limiter: a separate limiter bounds them.
func Example_streams() {
	lim, _ := limiter.New(limiter.Config{Name: "http"})
	streams, _ := limiter.New(limiter.Config{Name: "streams", Law: limit.NewFixed(1)})
	admit, err := admissionhttp.New(admissionhttp.Config{Limiter: lim})
	if err != nil {
		fmt.Println(err)
		return
	}
	var events http.Handler
	events = bounded(streams, admit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush() // from here on the answer is a stream
		fmt.Println("slots", lim.Stats().InFlight, "streams", streams.Stats().InFlight)
		if r.URL.Path == "/first" { // while the first request runs, another request comes
			fmt.Println("another:", answer(events, http.MethodGet, "/second"))
		}
	})))
	events.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/first", nil))
	fmt.Println("later:", answer(events, http.MethodGet, "/later"))
	// Output:
	// slots 0 streams 1
	// another: 503
	// slots 0 streams 1
	// later: 200
}
