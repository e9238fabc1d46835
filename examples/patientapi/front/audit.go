package front

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/internal/discreet"
	"github.com/spillway-go/spillway/route"
)

// auditor is what the audit of all APIs shares.
type auditor struct {
	log        audit.Log // nil: off
	closed     bool
	unrecorded *discreet.Log
}

func newAuditor(cfg Config) auditor {
	return auditor{cfg.Audit, cfg.AuditClosed, discreet.NewLog(cfg.Logger, slog.LevelError, "accesses are not on record", "accesses")}
}

// audit puts every request that is not for a public page on record, before the first
// byte of its answer leaves: also one that is refused behind it. Of an answer that is
// still being written then, each part about more patients is recorded before it leaves,
// and its end, if it did not go well or there were such parts.
//
// Answers are held until the handler has returned, and admission with it: many wait for
// one commit, and a limiter would take that wait for a queue of work. A stream, and an
// answer larger than mostHeld, waits where it is.
func (a *API) audit(next http.Handler) http.Handler {
	if a.front.auditor.log == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.public(r) {
			next.ServeHTTP(w, r)
			return
		}
		rec := &recorded{ResponseWriter: w, api: a, request: r, visit: access.FromContext(r.Context())}
		if r.Body != nil && r.Body != http.NoBody {
			rec.body.ReadCloser = r.Body
			r.Body = &rec.body
		}
		returned := false
		defer func() { // a panic goes on
			rec.end(returned)
			if rec.refused && !returned {
				rec.settle(recover())
			}
		}()
		next.ServeHTTP(rec, r)
		returned = true
	})
}

// watchedBody knows whether it was read.
type watchedBody struct {
	io.ReadCloser
	read atomic.Bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.read.Store(true)
	return b.ReadCloser.Read(p)
}

// mostHeld is how many bytes of an answer are held: as many as those of the largest
// that is no stream.
const mostHeld = 256 << 10

var heldBytes = sync.Pool{New: func() any { return new([]byte) }}

// recorded is a ResponseWriter that sends nothing before the request is on record.
type recorded struct {
	http.ResponseWriter
	api     *API
	request *http.Request
	visit   *access.Visit
	body    watchedBody

	status   int     // what the handler answers; 0: nothing yet
	held     *[]byte // of the answer, until it begins
	begun    bool    // on record, unless that failed, and sent
	patients int64   // as many were recorded
	parts    bool    // more patients were recorded since it began
	refused  bool    // not on record, and therefore answered otherwise
	cut      bool    // the client did not get all of it
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorded) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorded) WriteHeader(status int) {
	switch {
	case status < 200:
		w.ResponseWriter.WriteHeader(status)
	case w.status == 0:
		w.status = status
	}
}

func (w *recorded) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if !w.begun {
		if w.held == nil {
			w.held = heldBytes.Get().(*[]byte)
		}
		if len(*w.held)+len(p) <= mostHeld {
			*w.held = append(*w.held, p...)
			return len(p), nil
		}
		w.begin()
	}
	return w.send(p)
}

func (w *recorded) send(p []byte) (int, error) {
	if w.begun && touched(w.visit) > w.patients {
		w.parts = true
		w.cut = !w.record(w.status, w.outcome(), w.patients) && w.api.front.auditor.closed || w.cut
	}
	if w.refused || w.cut {
		return 0, http.ErrAbortHandler
	}
	n, err := w.ResponseWriter.Write(p)
	w.cut = w.cut || err != nil
	return n, err
}

// FlushError is for http.ResponseController. What is flushed is sent.
func (w *recorded) FlushError() error {
	w.WriteHeader(http.StatusOK)
	if !w.begun {
		w.begin()
	}
	if w.refused {
		return http.ErrAbortHandler
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// begin puts the request on record and sends what was held of the answer. Where it
// cannot be recorded, and has to, that is the answer.
func (w *recorded) begin() {
	w.begun = true
	if !w.record(w.status, w.outcome(), 0) && w.api.front.auditor.closed {
		w.refuse()
		return
	}
	w.ResponseWriter.WriteHeader(w.status)
	if w.held != nil && len(*w.held) > 0 {
		_, _ = w.send(*w.held) // end looks whether it was
	}
}

func (w *recorded) refuse() {
	w.refused = true
	h := w.Header() // may say something about what is not sent
	for name := range h {
		if name != requestIDHeader && name != "Cache-Control" {
			delete(h, name)
		}
	}
	w.api.Problem(w.ResponseWriter, w.request, &route.Problem{
		Status: http.StatusServiceUnavailable, Type: "not-recorded", Detail: "the access could not be put on record, so it was not given",
	})
}

// settle keeps an answer of refuse whole, when a handler has broken off because of it.
func (w *recorded) settle(panicked any) {
	if panicked != nil && panicked != http.ErrAbortHandler {
		panic(panicked)
	}
}

// end sends what is held, and records what the beginning of the answer could not say.
func (w *recorded) end(returned bool) {
	if returned && !w.begun {
		w.WriteHeader(http.StatusOK)
		w.begin()
	}
	switch {
	case w.refused:
	case !w.begun: // a panic, which is answered further out, without data
		w.record(http.StatusInternalServerError, audit.Failed, 0)
	case !returned || w.cut:
		w.record(w.status, audit.Failed, 0)
	case w.parts || touched(w.visit) > w.patients:
		w.record(w.status, w.outcome(), 0)
	}
	if w.held != nil {
		*w.held = (*w.held)[:0]
		heldBytes.Put(w.held)
	}
}

// record reports whether the request is on record, with the patients it was about but the
// first of them.
func (w *recorded) record(status int, o audit.Outcome, first int64) bool {
	e := w.event(first)
	e.Status, e.Outcome = status, o
	// A client that leaves does not take its record with it. The log bounds the wait.
	err := w.api.front.auditor.log.Record(context.WithoutCancel(w.request.Context()), e)
	if err != nil {
		w.api.front.auditor.unrecorded.Add(time.Now(), "error", discreet.Text(err.Error()), "route", e.Route, "request_id", e.RequestID)
	}
	return err == nil
}

func (w *recorded) event(first int64) audit.Event {
	p := &w.visit.Principal
	e := audit.Event{
		Time: time.Now(), RequestID: w.Header().Get(requestIDHeader), Subject: p.Subject, Role: string(p.Role),
		Action: string(w.visit.Action), Resource: string(w.visit.Resource), Route: w.request.Pattern,
		Patients: w.visit.Patients(), More: int64(w.visit.Unnamed()),
	}
	w.patients = int64(len(e.Patients)) + e.More
	named := min(first, int64(len(e.Patients)))
	e.Patients, e.More = e.Patients[named:], e.More-(first-named)
	if e.Subject == "" {
		e.Source, _, _ = net.SplitHostPort(w.request.RemoteAddr)
	}
	if len(e.Patients) == 0 {
		e.Patients = w.api.needs[w.request.Pattern].named(w.request)
	}
	e.Unread = len(e.Patients) == 0 && w.body.ReadCloser != nil && !w.body.read.Load()
	return e
}

// touched is how many patients the request was about so far.
func touched(v *access.Visit) int64 { return int64(len(v.Patients()) + v.Unnamed()) }

// named returns the patient whom the path of a request names.
func (n need) named(r *http.Request) []string {
	if id, ok := n.id(r); ok {
		return []string{id}
	}
	return nil
}

// outcome is what became of the request. What belongs to another is answered as if it did
// not exist, and is denied all the same.
func (w *recorded) outcome() audit.Outcome {
	if w.visit.Denied() {
		return audit.Denied
	}
	return outcome(w.status, w.Header())
}

// outcome is what an answer of that status and header says about the request.
func outcome(status int, h http.Header) audit.Outcome {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return audit.Denied
	case h.Get(admissionhttp.HeaderReason) != "":
		return audit.Shed
	case status < 400, status == http.StatusNotFound:
		return audit.Granted
	}
	return audit.Failed
}
