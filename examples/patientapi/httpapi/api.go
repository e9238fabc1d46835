// Package httpapi answers lookups of patients and clinicians over HTTP, under any pattern of
// package patterns.
//
// Its operations are routes of package route, which binds and checks what clients
// send, and describes it: Document. Everything that fails is answered as
// application/problem+json (RFC 9457). Overload is 503 with Retry-After. No
// answer and no log line repeats what a client sent, logs hold no patient data, and
// whatever a flood of requests may cause is logged in at most one line a second.
package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/trace"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/front"
	"github.com/spillway-go/spillway/examples/patientapi/internal/discreet"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
)

// checkTimeout bounds how long /health waits for the store.
const checkTimeout = time.Second

// Pinger reports whether it can answer.
type Pinger interface {
	Ping(ctx context.Context) error
}

// Config says what an API serves. The first four are needed.
type Config struct {
	Runner     *patterns.Runner
	Patients   patientapi.Store
	Clinicians *directory.Directory
	Health     Pinger // asked by /health

	Verifier front.Verifier // of tokens; nil means that none is good

	Timeout     time.Duration   // of a request, once it is admitted; 0 means none
	Deadlines   front.Deadlines // of requests by their class, their wait for admission included; adaptive pattern only
	BodyTimeout time.Duration   // to receive a body; 0 means 10 s
	Logger      *slog.Logger    // nil means that nothing is logged
	Tracer      trace.Tracer    // of requests; nil means that there are no spans

	Audit       audit.Log    // takes every access; nil means that there is no record
	AuditClosed bool         // see front.Config
	Unrecorded  func() error // why accesses cannot be put on record now; nil if there is no record

	Metrics []prometheus.Collector // of other parts of the service, shown as well
}

// API is the service's http.Handler for clients. A new one is not ready: see
// SetReady. What its operators look at is apart: see Admin.
type API struct {
	cfg       Config
	pattern   string
	front     *front.Front
	clients   http.Handler
	ready     atomic.Bool
	admin     *http.ServeMux
	unhealthy *discreet.Log
}

// New returns the API of cfg, with metrics of its own.
func New(cfg Config) *API {
	registry := prometheus.NewRegistry()
	pattern := cfg.Runner.Name()
	a := &API{
		cfg:     cfg,
		pattern: pattern,
		front: front.New(front.Config{
			Logger: cfg.Logger, Pattern: pattern, Metrics: registry, Verifier: cfg.Verifier, Limiter: cfg.Runner.Admission(), Deadlines: cfg.Deadlines,
			Audit: cfg.Audit, AuditClosed: cfg.AuditClosed, Tracer: cfg.Tracer,
		}),
		admin:     http.NewServeMux(),
		unhealthy: discreet.NewLog(cfg.Logger, slog.LevelError, "the store does not answer", "failures"),
	}
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if c := cfg.Runner.Collector(); c != nil {
		registry.MustRegister(c)
	}
	registry.MustRegister(cacheMetrics(cfg.Clinicians)...)
	registry.MustRegister(cfg.Metrics...)
	clients := must(a.operations())
	must(0, clients.Document("GET /openapi.json", about))
	must(0, clients.Page("GET /{$}", http.HandlerFunc(a.index)))
	for pattern, h := range map[string]http.HandlerFunc{"GET /livez": a.livez, "GET /readyz": a.readyz} {
		must(0, clients.Page(pattern, h))
		a.admin.HandleFunc(pattern, h) // where clients cannot take the last connection
	}
	a.clients = clients
	a.admin.HandleFunc("GET /health", a.health)
	if lim := cfg.Runner.Limiter(); lim != nil {
		a.admin.Handle("/debug/spillway/", admissionhttp.DebugHandler(lim))
	}
	a.admin.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.clients.ServeHTTP(w, r) }

// Admin serves what is for those who run the service and not for its clients:
// /metrics and /health, /debug/spillway/ where the pattern has a limiter, and once more
// /livez and /readyz. Put it on a listener of its own, which clients cannot
// reach.
func (a *API) Admin() http.Handler { return a.admin }

// Front returns what stands in front of the API, for another API of the same service.
func (a *API) Front() *front.Front { return a.front }

// Outcomes returns how many requests ended in which way so far.
func (a *API) Outcomes() front.Outcomes { return a.front.Outcomes() }

// must is for errors that no configuration brings about, only a change of this
// package, which no test would survive.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// SetReady says whether /readyz sends clients here: not while starting, not
// while draining, and never by load.
func (a *API) SetReady(ready bool) {
	a.ready.Store(ready)
	if !ready {
		a.front.Flush()
	}
}
