package front

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/discreet"
	"github.com/spillway-go/spillway/route"
)

// answer is the ResponseWriter of one request. It remembers the status.
type answer struct {
	http.ResponseWriter
	api    *API
	status int
}

// Unwrap lets http.ResponseController reach the connection.
func (w *answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *answer) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *answer) Write(body []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(body)
}

// answerIn returns the answer that w is, or is around; nil for a probe.
func answerIn(w http.ResponseWriter) *answer {
	for {
		switch inner := w.(type) {
		case *answer:
			return inner
		case interface{ Unwrap() http.ResponseWriter }:
			w = inner.Unwrap()
		default:
			return nil
		}
	}
}

var noStore = []string{"no-store"}

// isProbe reports whether r asks whether the service is there. Probes come by the clock.
func isProbe(r *http.Request) bool { return r.Pattern == "GET /livez" || r.Pattern == "GET /readyz" }

// observe counts what becomes of requests, and answers them when the handler panics.
// Probes are left alone: they come by the clock.
func (a *API) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isProbe(r) {
			next.ServeHTTP(w, r)
			return
		}
		start := time.Now()
		w.Header()["Cache-Control"] = noStore
		ans := &answer{ResponseWriter: w, api: a}
		returned := false
		defer func() {
			if !returned {
				a.failed(ans, r, recover())
			}
			status := ans.status
			if status == statusAborted && r.Context().Err() == context.Canceled {
				status = statusGone // in the middle of its answer
			}
			a.front.count(cmp.Or(r.Pattern, unmatched), status, time.Since(start))
			if !returned && ans.status == statusAborted {
				panic(http.ErrAbortHandler)
			}
		}()
		next.ServeHTTP(ans, r)
		returned = true
	})
}

// refuse answers a request that was not admitted, as the API it is for answers
// problems. It is logged by the middleware that refused it.
func refuse(w http.ResponseWriter, r *http.Request, status int) {
	p := &route.Problem{Status: status, Title: "Client Closed Request"}
	if status != statusGone {
		p.Type, p.Title = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity", "Temporarily reduced capacity"
		p.Detail = "The request was not started: " + w.Header().Get(admissionhttp.HeaderReason)
	}
	answerIn(w).api.Problem(w, r, p)
}

const (
	// statusGone is that of a client that left before its answer. Nothing is sent.
	statusGone = 499
	// statusAborted is counted for an answer that was broken off.
	statusAborted = -1
)

// errNotReturned is a handler that did not return; what it did instead is logged.
var errNotReturned = errors.New("handler did not return")

var notReturned = route.Is(errNotReturned, route.Problem{Status: http.StatusInternalServerError, Type: "internal", Detail: "something went wrong here; it has been logged"})

// failed deals with a handler that did not return.
func (a *API) failed(w *answer, r *http.Request, v any) {
	if v == http.ErrAbortHandler { // asks net/http to cut the connection, silently
		w.status = statusAborted
		return
	}
	what := "panic"
	if v == nil {
		what = "runtime.Goexit"
	}
	a.front.panics.Add(time.Now(), "what", what, "panic", discreet.Text(fmt.Sprint(v)), "request_id", w.Header().Get(requestIDHeader), "stack", string(debug.Stack()))
	if w.status != 0 { // part of an answer must not pass for all of it
		w.status = statusAborted
		return
	}
	a.Problem(w, r, errNotReturned)
	if v == nil { // net/http closes the connection without flushing it
		_ = http.NewResponseController(w.ResponseWriter).Flush()
	}
}

// onProblem names the request in its problem, and logs what is not the client's
// to mend, in at most one line a second of each kind.
func (f *Front) onProblem(w http.ResponseWriter, r *http.Request, p *route.Problem, err error) {
	id := w.Header().Get(requestIDHeader)
	p.Members = map[string]any{"request_id": id}
	switch {
	case p.Status == statusGone:
		if ans := answerIn(w); ans != nil {
			ans.status = statusGone
		}
	case p.Status == http.StatusUnauthorized:
		w.Header().Set(challengeHeader, "Bearer")
	case errors.Is(err, spillway.ErrRejected):
		if rejection, ok := errors.AsType[*spillway.Rejection](err); ok {
			w.Header().Set(admissionhttp.HeaderReason, rejection.Reason.String())
		}
		f.shed.Add(time.Now())
	case errors.Is(err, patientapi.ErrUnavailable):
		f.unavailable.Add(time.Now(), "error", discreet.Text(err.Error()), "route", r.Pattern, "request_id", id)
	case p.Status == http.StatusInternalServerError && err != errNotReturned:
		f.broken.Add(time.Now(), "error", discreet.Text(err.Error()), "route", r.Pattern, "request_id", id)
	}
}
