package route

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/carry"
)

// mark is the priority and cost of a route's requests, for the limiters they pass.
type mark struct {
	priority           spillway.Priority
	cost               int
	prioritized, costs bool
}

func (m mark) check() error {
	var errs []error
	if m.priority < spillway.Low || m.priority > spillway.Critical {
		errs = append(errs, fmt.Errorf("%v is no priority", m.priority))
	}
	if m.costs && m.cost < 1 {
		errs = append(errs, fmt.Errorf("cost %d is less than one slot", m.cost))
	}
	return errors.Join(errs...)
}

func (m mark) none() bool { return !m.prioritized && !m.costs }

func (m mark) context(ctx context.Context) context.Context {
	w := carry.In(ctx) // one value for both
	if m.prioritized {
		w.Priority = int8(m.priority)
	}
	if m.costs {
		w.Cost = int32(min(m.cost, math.MaxInt32))
	}
	return w
}

func (m mark) on(r *http.Request) *http.Request {
	if m.none() {
		return r
	}
	return r.WithContext(m.context(r.Context()))
}

// around returns h for marked requests, as a ContextHandler if h is one.
func (m mark) around(h http.Handler) http.Handler {
	if m.none() {
		return h
	}
	if direct, ok := h.(ContextHandler); ok {
		return marked{direct, m}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, m.on(r)) })
}

type marked struct {
	handler ContextHandler
	mark    mark
}

func (m marked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.ServeContext(r.Context(), w, r, nil)
}

func (m marked) ServeContext(ctx context.Context, w http.ResponseWriter, r *http.Request, values PathValues) {
	m.handler.ServeContext(m.mark.context(ctx), w, r, values)
}
