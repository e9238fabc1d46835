package httpapi

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"
)

// ServeHTTP implements http.Handler: a request id in and out, problems also for
// what the routes do not know.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("X-Request-Id")
	if !saneRequestID(id) {
		id = rand.Text()
	}
	w.Header().Set("X-Request-Id", id)
	a.mux.ServeHTTP(&answer{ResponseWriter: w, request: r, requestID: id}, r)
}

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

// answer is the ResponseWriter of one request. It remembers the status, and
// replaces what the mux says by itself (404, 405) with a problem.
type answer struct {
	http.ResponseWriter
	request   *http.Request
	requestID string
	status    int
	replaced  bool
}

// Unwrap lets http.ResponseController reach the connection.
func (w *answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *answer) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		if w.request.Pattern == "" && status >= 400 {
			w.replaced = true
			p := &problem{Status: status, Type: "no-such-resource", Detail: "see / for what is here"}
			if status == http.StatusMethodNotAllowed {
				p.Type, p.Detail = "method-not-allowed", "use "+w.Header().Get("Allow")
			}
			w.Header().Del("X-Content-Type-Options")
			p.write(w.ResponseWriter, w.requestID)
			return
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *answer) Write(body []byte) (int, error) {
	if w.replaced {
		return len(body), nil
	}
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(body)
}

// route serves the API's own requests: bounded in time, counted, and answered
// also when the handler fails or panics.
func (a *API) route(pattern string, h handler) {
	a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		ans := w.(*answer)
		if a.cfg.Timeout > 0 {
			ctx, cancel := context.WithTimeout(r.Context(), a.cfg.Timeout)
			defer cancel()
			r = r.WithContext(ctx)
		}
		returned := false
		defer func() {
			if !returned {
				a.failed(ans, recover())
			}
			a.count(pattern, ans.status, time.Since(start))
			if !returned && ans.status == statusAborted {
				panic(http.ErrAbortHandler)
			}
		}()
		if err := h(ans, r); err != nil {
			a.refuse(ans, err)
		}
		returned = true
	})
}

// statusAborted is counted for an answer that http.ErrAbortHandler broke off.
const statusAborted = -1

// failed deals with a handler that did not return.
func (a *API) failed(w *answer, v any) {
	if v == http.ErrAbortHandler { // asks net/http to cut the connection, silently
		w.status = statusAborted
		return
	}
	what := "handler panicked"
	if v == nil {
		what = "handler called runtime.Goexit"
	}
	a.cfg.Logger.Error(what, "panic", v, "request_id", w.requestID, "stack", string(debug.Stack()))
	if w.status == 0 {
		w.status = http.StatusInternalServerError
		errPanicked.write(w.ResponseWriter, w.requestID)
		if v == nil { // net/http closes the connection without flushing it
			_ = http.NewResponseController(w.ResponseWriter).Flush()
		}
	}
}

var errPanicked = &problem{Status: http.StatusInternalServerError, Type: "internal",
	Detail: "something went wrong here; it has been logged"}

// refuse answers with the problem that err is.
func (a *API) refuse(w *answer, err error) {
	if w.status != 0 {
		return // the answer has begun
	}
	p := problemOf(err)
	switch {
	case p.overload:
		a.shed.add(time.Now())
	case p.Type == "internal":
		a.cfg.Logger.Error("request failed", "error", err, "request_id", w.requestID)
	}
	w.status = p.Status
	p.write(w.ResponseWriter, w.requestID)
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

// shedLog writes at most one line a second while requests are refused: a log
// that grows with the flood is part of the flood.
type shedLog struct {
	logger  *slog.Logger
	pattern string

	mu      sync.Mutex
	last    time.Time
	refused uint64 // since the last line
}

// add counts a refusal and writes the line if one is due.
func (l *shedLog) add(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused++
	if now.Sub(l.last) >= time.Second {
		l.write(now)
	}
}

// flush writes what no line has told yet.
func (l *shedLog) flush(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused > 0 {
		l.write(now)
	}
}

func (l *shedLog) write(now time.Time) {
	l.logger.Warn("shedding", "pattern", l.pattern, "refused", l.refused)
	l.last, l.refused = now, 0
}
