package patterns

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway"
)

// naive starts a goroutine for every request.
type naive struct {
	logger *slog.Logger

	mu        sync.Mutex
	draining  bool
	idle      chan struct{} // closed when a draining naive has nothing in flight
	offered   uint64
	completed uint64
	refused   uint64
	cancelled uint64
	inFlight  int
}

// outcome is how a goroutine ended.
type outcome struct {
	resp     *Response
	err      error
	panicked any
	goexit   bool
}

func (n *naive) do(ctx context.Context, fn work) (*Response, error) {
	if err := n.enter(ctx); err != nil {
		return nil, err
	}
	done := make(chan outcome, 1) // the goroutine never waits for a caller who left
	go func() {
		defer n.leave()
		end := outcome{goexit: true} // unless fn comes back or panics
		defer func() {
			if v := recover(); v != nil {
				end = outcome{panicked: v}
				logPanic(n.logger, v, debug.Stack())
			}
			done <- end
		}()
		resp, err := fn(ctx)
		end = outcome{resp: resp, err: err}
	}()
	var end outcome
	select {
	case end = <-done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case end.panicked != nil:
		panic(end.panicked)
	case end.goexit:
		runtime.Goexit()
	}
	return end.resp, end.err
}

func (n *naive) enter(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.offered++
	if n.draining {
		n.refused++
		return &spillway.Rejection{Reason: spillway.Draining}
	}
	if err := ctx.Err(); err != nil {
		n.cancelled++
		return err
	}
	n.inFlight++
	return nil
}

func (n *naive) leave() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.inFlight--
	n.completed++
	if n.inFlight == 0 && n.idle != nil {
		close(n.idle)
		n.idle = nil
	}
}

func (n *naive) drain(ctx context.Context) error {
	n.mu.Lock()
	n.draining = true
	if n.inFlight == 0 {
		n.mu.Unlock()
		return nil
	}
	if n.idle == nil {
		n.idle = make(chan struct{})
	}
	idle := n.idle
	n.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		n.mu.Lock()
		defer n.mu.Unlock()
		return &spillway.DrainError{Running: n.inFlight, Cause: ctx.Err()}
	}
}

func (n *naive) stats(s *Stats) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s.Offered, s.Completed, s.Rejected, s.Cancelled, s.InFlight = n.offered, n.completed, n.refused, n.cancelled, n.inFlight
	s.Admitted = n.completed + uint64(n.inFlight)
	if n.refused > 0 {
		s.Reasons[spillway.Draining.String()] = n.refused
	}
}

func (n *naive) collector() prometheus.Collector { return nil }

// logPanic records a panic where its stack still is. It goes on to the caller;
// if that has left, this line is all there is.
func logPanic(logger *slog.Logger, value any, stack []byte) {
	if logger == nil || value == http.ErrAbortHandler {
		return
	}
	logger.Error("lookup panicked", "panic", value, "stack", string(stack))
}
