package admissionhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// answer sends a request to a handler and returns the status.
func answer(h http.Handler, method, path string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Code
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "hello") }

// One line in front of any handler. SPILLWAY_MODE=dryrun refuses nothing yet.
func ExampleProtect() {
	handler := http.HandlerFunc(hello)
	server := &http.Server{Addr: ":8080", Handler: admissionhttp.Protect(handler)}

	fmt.Println(answer(server.Handler, http.MethodGet, "/"))
	// Output: 200
}

// A service: a priority and a deadline for each route, probes, and a drain.
func ExampleNew() {
	mode, err := admissionhttp.ModeFromEnv()
	if err != nil {
		fmt.Println(err)
		return
	}
	lim, err := limiter.New(limiter.Config{Name: "http", Mode: mode})
	if err != nil {
		fmt.Println(err)
		return
	}
	admit, err := admissionhttp.New(admissionhttp.Config{
		Limiter: lim,
		Deadlines: map[spillway.Priority]time.Duration{
			spillway.Critical: 2 * time.Second, spillway.Normal: 5 * time.Second, spillway.Low: 30 * time.Second,
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var up atomic.Bool
	mux := http.NewServeMux()
	mux.Handle("GET /readyz", admissionhttp.Ready(up.Load, lim.Open))
	mux.Handle("GET /orders", admit(http.HandlerFunc(hello)))
	mux.Handle("POST /orders", admissionhttp.WithPriority(spillway.Critical, admit(http.HandlerFunc(hello))))
	mux.Handle("GET /export", admissionhttp.WithPriority(spillway.Low, admit(http.HandlerFunc(hello))))

	fmt.Println("starting:", answer(mux, http.MethodGet, "/readyz"))
	up.Store(true)
	fmt.Println("ready:", answer(mux, http.MethodGet, "/readyz"), answer(mux, http.MethodPost, "/orders"))

	up.Store(false) // then wait until load balancers have noticed
	if err := lim.Drain(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println("drained:", answer(mux, http.MethodGet, "/readyz"), answer(mux, http.MethodPost, "/orders"))
	// Output:
	// starting: 503
	// ready: 200 200
	// drained: 503 503
}

// A slot is held while work continues, even after http.TimeoutHandler has given up.
func ExampleHold() {
	lim, _ := limiter.New(limiter.Config{})
	admit, err := admissionhttp.New(admissionhttp.Config{Limiter: lim, Hold: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	work, ended := make(chan struct{}), make(chan struct{})
	h := admit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		release := admissionhttp.Hold(r.Context())
		go func() {
			defer close(ended)
			defer release()
			<-work
		}()
		w.WriteHeader(http.StatusAccepted)
	}))

	fmt.Println(answer(h, http.MethodPost, "/"), lim.Stats().InFlight)
	close(work)
	<-ended
	fmt.Println(lim.Stats().InFlight)
	// Output:
	// 202 1
	// 0
}

// A handler that acquires from a limiter itself can answer a refusal in one call.
func ExampleRefuse() {
	lim, _ := limiter.New(limiter.Config{Law: limit.NewFixed(1), QueueSize: -1})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		permit, err := lim.Acquire(r.Context())
		if admissionhttp.Refuse(w, r, err) {
			return
		}
		defer permit.Release()
		hello(w, r)
		permit.Done(nil)
	})

	busy, _ := lim.Acquire(context.Background())
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(w.Code, w.Header().Get("Spillway-Reason"), w.Header().Get("Content-Type"))
	busy.Release()
	fmt.Println(answer(h, http.MethodGet, "/"))
	// Output:
	// 503 queue_full application/problem+json
	// 200
}
