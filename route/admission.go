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

// admission is the priority and cost of a route's requests, for the limiters they pass.
type admission struct {
	priority           spillway.Priority
	cost               int
	prioritized, costs bool
}

func (a admission) check() error {
	var errs []error
	if a.priority < spillway.Low || a.priority > spillway.Critical {
		errs = append(errs, fmt.Errorf("%v is no priority", a.priority))
	}
	if a.costs && a.cost < 1 {
		errs = append(errs, fmt.Errorf("cost %d is less than one slot", a.cost))
	}
	return errors.Join(errs...)
}

func (a admission) isZero() bool { return !a.prioritized && !a.costs }

func (a admission) context(ctx context.Context) context.Context {
	w := carry.In(ctx) // one value for both
	if a.prioritized {
		w.Priority = int8(a.priority)
	}
	if a.costs {
		w.Cost = min(a.cost, math.MaxInt32)
	}
	return w
}

func (a admission) apply(r *http.Request) *http.Request {
	if a.isZero() {
		return r
	}
	return r.WithContext(a.context(r.Context()))
}

// wrap returns h for requests with a, as a contextHandler if h is one.
func (a admission) wrap(h http.Handler) http.Handler {
	if a.isZero() {
		return h
	}
	if direct, ok := h.(contextHandler); ok {
		return admissionHandler{direct, a}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, a.apply(r)) })
}

type admissionHandler struct {
	handler   contextHandler
	admission admission
}

func (m admissionHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.ServeContext(r.Context(), w, r, nil)
}

func (m admissionHandler) ServeContext(ctx context.Context, w http.ResponseWriter, r *http.Request, values pathValues) {
	m.handler.ServeContext(m.admission.context(ctx), w, r, values)
}
