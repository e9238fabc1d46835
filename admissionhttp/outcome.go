package admissionhttp

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/spillway-go/spillway"
)

// run serves the request. The slot is freed however the handler ends.
func (w *work) run(next http.Handler, r *http.Request) {
	returned := false
	defer func() {
		if w.broken = !returned; w.broken && r.Context().Err() != nil { // as a reverse proxy ends an answer that nobody reads
			w.broken, w.outcome = false, w.result(r)
		}
		if w.held.Add(-1) == 0 {
			w.settle()
		}
		w.leave(r)
	}()
	next.ServeHTTP(w.writer(), r)
	w.outcome = w.result(r)
	returned = true
	if w.limited && w.cutOff(r) {
		w.guard.cut.new.Add(1)
		w.guard.tell(&w.guard.cut, "answers were cut off by a deadline")
		panic(http.ErrAbortHandler)
	}
}

// settle ends the permit.
func (w *work) settle() {
	w.guard.leave(&w.ticket)
	if w.broken {
		w.outcome = errFailed
	}
	w.permit.Done(w.outcome)
}

// result returns the outcome of the answer, for the limiter.
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
	var usual error
	if !served(status) {
		usual = unserved(status, w.Header())
	}
	if w.guard.outcome != nil {
		return w.guard.outcome(status, w.Header(), usual)
	}
	return usual
}

// cutOff reports whether a deadline of the middleware has ended the answer in its middle, as Config.Deadlines
// says.
func (w *work) cutOff(r *http.Request) bool {
	if w.writing.Load() == 0 || context.Cause(&w.scope) != context.DeadlineExceeded ||
		r.Method == http.MethodHead || w.status == http.StatusNoContent || w.status == http.StatusNotModified ||
		r.Context().Value(http.ServerContextKey) == nil { // only a server knows http.ErrAbortHandler
		return false
	}
	h := w.Header()
	if declared, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil {
		return w.written < declared
	}
	if streams(h.Get("Content-Type")) {
		return false // may end anywhere
	}
	// An encoder inside writes its end for a handler that has given up.
	return !w.late || w.failed || h.Get("Content-Encoding") != ""
}

// errFailed is the outcome of an answer that is no sample, and of a handler that panics.
var errFailed = errors.New("admissionhttp: the handler failed")

// served reports whether the time until the answer is the time of work: for a status below 500,
// except 429 (a caller's quota) and 408 (a client was slow to send its body).
func served(status int) bool {
	return status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout
}

// noOverload has the reasons for a 503 from a service below that are no sign of overload.
var noOverload = []string{spillway.ReasonDeadlineTooClose.String(), spillway.ReasonBudget.String()}

// unserved returns the outcome of an answer that is not served, as Config.Outcome says.
func unserved(status int, header http.Header) error {
	switch {
	case status == http.StatusServiceUnavailable && header.Get("Retry-After") != "" && !slices.Contains(noOverload, header.Get(HeaderReason)):
		return spillway.ErrRejected
	case status == http.StatusGatewayTimeout:
		return context.DeadlineExceeded
	}
	return errFailed
}
