// Package front is what every API of the service has in front of its operations, so that
// each API is only its operations. A request passes, in this order:
//
//	request id → authentication → audit → admission → binding → handler
//
// The request id comes first, because everything after it is logged under it. Admission
// comes before the body is read, and audit before admission, so that what is refused is
// on record as well. For the same reason authentication only finds out who asks: what is
// to be answered 401 or 403 passes audit, and is answered by authorisation behind it,
// before admission. Around it all the front counts what becomes of requests, answers
// for handlers that panic, and logs failures: in at most one line a second of each kind,
// and without anything that a client sent.
package front

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/internal/discreet"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/route"
)

// Config says what a Front does besides counting. The zero Config works.
type Config struct {
	// Logger is told what goes wrong. Nil means that nothing is logged.
	Logger *slog.Logger

	// Pattern is how operations are run, for the log.
	Pattern string

	// Metrics is where the time to answer is registered; nil for nowhere.
	Metrics prometheus.Registerer

	// Verifier finds out who asks. Nil means that no token is good, and that only what
	// is public is answered.
	Verifier Verifier

	// Audit takes every request that is not for a public page, before it is answered.
	// Nil means that there is no record.
	Audit audit.Log

	// AuditClosed says that what cannot be put on record is answered 503, without data.
	// Otherwise it is answered and logged.
	AuditClosed bool

	// Limiter decides whether a request may go on, before its body is read. Nil means
	// that all may; operations may still be refused further in. Health probes are
	// exempt.
	Limiter *limiter.Limiter

	// Deadlines bound requests that pass the Limiter.
	Deadlines Deadlines

	// Tracer makes spans of requests, their wait for the Limiter and their work; nil
	// makes none and costs nothing.
	Tracer trace.Tracer
}

// Deadlines are how long requests of a class may take, from their arrival. Zero or less
// means that there is no bound. A client may ask for less, in the header
// Spillway-Deadline.
type Deadlines struct {
	Critical time.Duration // spillway.Critical and High
	Normal   time.Duration
	Bulk     time.Duration // spillway.Low
}

// DefaultDeadlines are those of the service, unless its flags say otherwise.
func DefaultDeadlines() Deadlines {
	return Deadlines{Critical: 2 * time.Second, Normal: 5 * time.Second, Bulk: 30 * time.Second}
}

func (d Deadlines) byPriority() map[spillway.Priority]time.Duration {
	return map[spillway.Priority]time.Duration{
		spillway.Critical: least(d.Critical), spillway.High: least(d.Critical), spillway.Normal: least(d.Normal), spillway.Low: least(d.Bulk),
	}
}

// least returns a deadline that the middleware accepts: none, or a millisecond or more.
func least(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return max(d, time.Millisecond)
}

// Front is what the APIs of one service share. It is safe for concurrent use once they
// are made.
type Front struct {
	apis      []*API
	verifier  Verifier
	auditor   auditor
	admission func(http.Handler) http.Handler
	traced    func(http.Handler) http.Handler // nil without a tracer
	outcomes  [outcomeKinds]atomic.Uint64
	served    *prometheus.HistogramVec

	shed, unauthenticated, unavailable, broken, panics *discreet.Log
}

// New returns a Front. It panics if Metrics has one already.
func New(cfg Config) *Front {
	f := &Front{
		verifier: cfg.Verifier,
		served: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "patientapi_http_request_duration_seconds",
			Help:    "Time to answer, by route and status code.",
			Buckets: []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		}, []string{"route", "code"}),
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	failing := func(message string) *discreet.Log {
		return discreet.NewLog(cfg.Logger, slog.LevelError, message, "failures")
	}
	f.shed = discreet.NewLog(cfg.Logger.With("pattern", cfg.Pattern), slog.LevelWarn, "shedding", "refused")
	f.unauthenticated = discreet.NewLog(cfg.Logger, slog.LevelWarn, "tokens were not accepted", "refused")
	f.auditor = newAuditor(cfg)
	f.unavailable, f.broken, f.panics = failing("the store failed"), failing("requests failed"), failing("handlers did not return")
	if cfg.Metrics != nil {
		cfg.Metrics.MustRegister(f.served)
	}
	if cfg.Limiter != nil {
		var err error
		f.admission, err = admissionhttp.New(admissionhttp.Config{
			Limiter: cfg.Limiter, Deadlines: cfg.Deadlines.byPriority(), Refusal: refuse, Long: exports, Logger: cfg.Logger,
		})
		if err != nil {
			panic(err) // nothing of cfg can be wrong
		}
	}
	f.trace(cfg.Tracer)
	return f
}

// Flush logs what no line has told yet.
func (f *Front) Flush() {
	for _, l := range []*discreet.Log{f.shed, f.unauthenticated, f.unavailable, f.broken, f.panics, f.auditor.unrecorded} {
		l.Flush(time.Now())
	}
}

// API is one API of the service: a route.Mux behind the front. Add everything before
// serving. Whatever is added says who may have it: see Add and Page.
type API struct {
	mux   *route.Mux
	front *Front
	needs map[string]need // by pattern
}

// API returns an API without operations. Of cfg, what the front does itself is replaced:
// OnProblem, Discreet and Untimed.
func (f *Front) API(cfg route.Config) *API {
	cfg.Errors = append(route.Errors{notReturned, unauthenticated, denied}, cfg.Errors...)
	cfg.OnProblem, cfg.Discreet = f.onProblem, true
	cfg.Untimed = true // the metrics tell, to those who run the service
	a := &API{route.NewMux(cfg), f, map[string]need{}}
	f.apis = append(f.apis, a)
	a.mux.Use(a.observe)
	if f.traced != nil {
		a.mux.Use(f.traced)
	}
	a.mux.Use(a.authenticate)
	a.mux.Use(a.audit) // sees what authorisation and admission refuse as well
	a.mux.Use(a.authorise)
	if f.admission != nil {
		a.mux.Use(f.admission)
	}
	return a
}

// ServeHTTP implements http.Handler: a request id in and out, and then what stands in
// front of operations.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(requestIDHeader, requestID(r))
	a.mux.ServeHTTP(w, r)
}

// Problem answers with the problem that err is: for middleware, and for pages that have
// not answered yet.
func (a *API) Problem(w http.ResponseWriter, r *http.Request, err error) { a.mux.Problem(w, r, err) }
