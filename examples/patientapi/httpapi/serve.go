package httpapi

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/discreet"
	"github.com/spillway-go/spillway/route"
)

// ServeHTTP implements http.Handler: a request id in and out, problems also for
// what the routes do not know. These are counted here, and operations by observe.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	id := r.Header.Get("X-Request-Id")
	if !saneRequestID(id) {
		id = rand.Text()
	}
	w.Header().Set("X-Request-Id", id)
	ans := &answer{ResponseWriter: w}
	a.mux.ServeHTTP(ans, r)
	if r.Pattern == "" || r.Pattern == "/" {
		a.count(unmatched, ans.status, time.Since(start))
	}
}

// unmatched is the route of requests that no route matches.
const unmatched = "(none)"

func requestID(w http.ResponseWriter) string { return w.Header().Get("X-Request-Id") }

// saneRequestID reports whether a client's request id may go into our logs.
func saneRequestID(id string) bool {
	if len(id) == 0 || len(id) > 128 {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

// answer is the ResponseWriter of one request. It remembers the status.
type answer struct {
	http.ResponseWriter
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

var noStore = []string{"no-store"}

// observe counts what becomes of an operation's requests, and answers them when
// the handler panics.
func (a *API) observe(pattern string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			start := time.Now()
			w.Header()["Cache-Control"] = noStore
			ans, ok := w.(*answer)
			if !ok {
				ans = &answer{ResponseWriter: w}
			}
			returned := false
			defer func() {
				if !returned {
					a.failed(ans, r, recover())
				}
				a.count(pattern, ans.status, time.Since(start))
				if !returned && ans.status == statusAborted {
					panic(http.ErrAbortHandler)
				}
			}()
			next.ServeHTTP(ans, r)
			returned = true
		})
	}
}

const (
	// statusGone is told of a client that left before its answer. Nothing is
	// sent: nobody is there.
	statusGone = 499
	// statusAborted is counted for an answer that was broken off.
	statusAborted = -1
)

// errAborted is a handler that did not return; what it did instead is logged.
var errAborted = errors.New("handler did not return")

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
	a.panics.Add(time.Now(), "what", what, "panic", discreet.Text(fmt.Sprint(v)), "request_id", requestID(w), "stack", string(debug.Stack()))
	if w.status != 0 { // part of an answer must not pass for all of it
		w.status = statusAborted
		return
	}
	a.mux.Problem(w, r, errAborted)
	if v == nil { // net/http closes the connection without flushing it
		_ = http.NewResponseController(w.ResponseWriter).Flush()
	}
}

// onProblem names the request in its problem, and logs what is not the client's
// to mend, in at most one line a second of each kind.
func (a *API) onProblem(w http.ResponseWriter, r *http.Request, p *route.Problem, err error) {
	id := requestID(w)
	p.Members = map[string]any{"request_id": id}
	switch {
	case p.Status == statusGone:
		if ans, ok := w.(*answer); ok {
			ans.status = statusGone
		}
	case errors.Is(err, spillway.ErrRejected):
		a.shed.Add(time.Now())
	case errors.Is(err, patientapi.ErrUnavailable):
		a.unavailable.Add(time.Now(), "error", discreet.Text(err.Error()), "route", r.Pattern, "request_id", id)
	case p.Status == http.StatusInternalServerError && err != errAborted:
		a.broken.Add(time.Now(), "error", discreet.Text(err.Error()), "route", r.Pattern, "request_id", id)
	}
}

// Outcomes counts the API's requests by what became of them.
type Outcomes struct {
	OK        uint64 `json:"ok"`
	Rejected  uint64 `json:"rejected"`  // 503
	BadInput  uint64 `json:"bad_input"` // 4xx, unknown patients too
	Error     uint64 `json:"error"`     // 5xx, broken off
	Timeout   uint64 `json:"timeout"`   // 504
	Abandoned uint64 `json:"abandoned"` // the client left first
}

const (
	outcomeOK = iota
	outcomeRejected
	outcomeBadInput
	outcomeError
	outcomeTimeout
	outcomeAbandoned
	outcomeKinds
)

func (a *API) count(route string, status int, took time.Duration) {
	kind := outcomeError
	switch {
	case status == http.StatusServiceUnavailable:
		kind = outcomeRejected
	case status == http.StatusGatewayTimeout:
		kind = outcomeTimeout
	case status == statusGone:
		kind = outcomeAbandoned
	case status >= 200 && status < 300:
		kind = outcomeOK
	case status >= 400 && status < 500:
		kind = outcomeBadInput
	}
	a.outcomes[kind].Add(1)
	code := "aborted"
	if status > 0 {
		code = strconv.Itoa(status)
	}
	a.served.WithLabelValues(route, code).Observe(took.Seconds())
}

// Outcomes returns the counts so far.
func (a *API) Outcomes() Outcomes {
	n := func(kind int) uint64 { return a.outcomes[kind].Load() }
	return Outcomes{
		OK: n(outcomeOK), Rejected: n(outcomeRejected), BadInput: n(outcomeBadInput),
		Error: n(outcomeError), Timeout: n(outcomeTimeout), Abandoned: n(outcomeAbandoned),
	}
}
