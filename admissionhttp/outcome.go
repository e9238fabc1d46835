package admissionhttp

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/spillway-go/spillway"
)

// run serves the request. The slot comes back however the handler ends.
func (w *work) run(next http.Handler, r *http.Request) {
	returned := false
	defer func() {
		w.broken = !returned
		if w.held.Add(-1) == 0 {
			w.settle()
		}
	}()
	next.ServeHTTP(w.writer(), r)
	w.outcome = w.result(r)
	returned = true
}

// settle ends the permit.
func (w *work) settle() {
	w.guard.leave(&w.ticket)
	if w.broken {
		w.permit.Release()
	} else {
		w.permit.Done(w.outcome)
	}
}

// result says what the answer teaches.
func (w *work) result(r *http.Request) error {
	if err := r.Context().Err(); err != nil {
		if w.proven != nil && context.Cause(r.Context()) == context.DeadlineExceeded {
			return context.DeadlineExceeded
		}
		return err
	}
	status := w.status
	if status == 0 {
		status = http.StatusOK
	}
	if w.guard.outcome != nil {
		return w.guard.outcome(status, w.Header())
	}
	if served(status) {
		return nil
	}
	return DefaultOutcome(status, w.Header())
}

// errFailed is an answer that is no sample.
var errFailed = errors.New("admissionhttp: the handler failed")

// served reports whether the time until the answer is that of work: below 500, apart
// from a caller's quota (429) and the time that a client took for its body (408).
func served(status int) bool {
	return status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout
}

// noOverload are the reasons for 503 below that say nothing about the capacity.
var noOverload = []string{spillway.DeadlineTooClose.String(), spillway.Budget.String()}

// DefaultOutcome is what an answer teaches the limiter: nil, a sample, below 500
// apart from 408 and 429; spillway.ErrRejected for 503 with Retry-After;
// context.DeadlineExceeded for 504; and another error, no sample, for all others. A
// caller's quota (429) says nothing about the capacity, the time that a client took
// for its body (408) neither, and a service that is broken fails fast. A 503 below
// for deadline_too_close or budget is no sample: clients choose their deadlines, and a
// budget that replicas share is used up by others.
func DefaultOutcome(status int, header http.Header) error {
	switch {
	case served(status):
		return nil
	case status == http.StatusServiceUnavailable && header.Get("Retry-After") != "" && !slices.Contains(noOverload, header.Get(HeaderReason)):
		return spillway.ErrRejected
	case status == http.StatusGatewayTimeout:
		return context.DeadlineExceeded
	}
	return errFailed
}
