package patterns

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/examples/patientapi/internal/discreet"
)

// naive starts a goroutine for every request.
type naive struct {
	panics panicLog

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
	made     any
	err      error
	panicked any
	goexit   bool
}

func (n *naive) do(ctx context.Context, fn work) (any, error) {
	if err := n.enter(ctx); err != nil {
		return nil, err
	}
	done := make(chan outcome, 1) // the goroutine does not wait for a caller that has left
	go func() {
		defer n.leave()
		end := outcome{goexit: true} // unless fn comes back or panics
		defer func() {
			if v := recover(); v != nil {
				end = outcome{panicked: v}
				n.panics.add(v, debug.Stack())
			}
			done <- end
		}()
		made, err := fn(ctx)
		end = outcome{made: made, err: err}
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
	return end.made, end.err
}

func (n *naive) enter(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.offered++
	if n.draining {
		n.refused++
		return &spillway.Rejection{Reason: spillway.ReasonDraining}
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
		s.Reasons[spillway.ReasonDraining.String()] = n.refused
	}
}

func (n *naive) collector() prometheus.Collector { return nil }

// panicLog records panics where their stack still is. They go on to their callers;
// where the caller has left, the line is all there is.
type panicLog struct{ log *discreet.Log }

func newPanicLog(logger *slog.Logger) panicLog {
	return panicLog{discreet.NewLog(logger, slog.LevelError, "an operation panicked", "panics")}
}

func (l panicLog) add(value any, stack []byte) {
	if value != http.ErrAbortHandler {
		l.log.Add(time.Now(), "panic", discreet.Text(fmt.Sprint(value)), "stack", string(stack))
	}
}
