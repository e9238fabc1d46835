package demo

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// Panics says whether a good request was still answered after three handlers
// panicked in two slots.
type Panics struct {
	Slots      int     `json:"slots"`
	Panics     int     `json:"panics"`
	Spillway   bool    `json:"spillway_answers"`
	Took       float64 `json:"spillway_took_ms"`
	ByHand     bool    `json:"by_hand_answers"` // slots acquired before and released after the work, without defer
	Conclusion string  `json:"conclusion"`
}

const (
	slots    = 2
	panics   = 3
	patience = 200 * time.Millisecond // of a client
)

// ThreePanics lets three handlers panic at a limit of two, then asks for a good
// answer: over HTTP on loopback, where net/http itself survives the panics.
func ThreePanics(ctx context.Context) (*Panics, error) {
	lim, err := limiter.New(limiter.Config{Law: limit.NewFixed(slots)})
	if err != nil {
		return nil, err
	}
	defer lim.Close()
	byHand := semaphore.NewWeighted(slots)
	doByHand := func(ctx context.Context, fn func(context.Context) error) error {
		if err := byHand.Acquire(ctx, 1); err != nil {
			return err
		}
		err := fn(ctx)
		byHand.Release(1)
		return err
	}
	p := &Panics{Slots: slots, Panics: panics}
	if p.Spillway, p.Took, err = survives(ctx, lim.Do); err != nil {
		return nil, err
	}
	if p.ByHand, _, err = survives(ctx, doByHand); err != nil {
		return nil, err
	}
	answered := map[bool]string{true: "answered it in " + Millis(p.Took), false: "did not answer"}
	answeredToo := map[bool]string{true: "answered it, too", false: "never answered again"}
	p.Conclusion = fmt.Sprintf("%d slots, %d handlers panicked, then a good request: spillway %s; slots counted by hand, without defer, %s.",
		slots, panics, answered[p.Spillway], answeredToo[p.ByHand])
	return p, ctx.Err()
}

// survives serves work inside do, lets it panic, and reports whether a good request is
// answered then, and in how many milliseconds.
func survives(ctx context.Context, do func(context.Context, func(context.Context) error) error) (bool, float64, error) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := do(r.Context(), func(context.Context) error {
			if r.URL.Path == "/panic" {
				panic("a bug in a handler")
			}
			return nil
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return false, 0, err
	}
	web := &http.Server{Handler: handler, ReadHeaderTimeout: time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = web.Serve(listener) }()
	defer web.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	get := func(path string) bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listener.Addr().String()+path, nil)
		if err != nil {
			return false
		}
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusOK
	}
	for range panics {
		get("/panic")
	}
	start := time.Now()
	good := get("/good")
	return good, ms(time.Since(start)), nil
}
