// Package httpapi answers lookups of patients and clinicians over HTTP, under any pattern of
// package patterns.
//
// Its operations are routes of package route, which binds and checks what clients
// send, and describes it: Document. Everything that fails is answered as
// application/problem+json (RFC 9457). Overload is 503 with Retry-After. No
// answer and no log line repeats what a client sent, logs hold nobody's data, and
// whatever a flood of requests may cause is logged in at most one line a second.
package httpapi

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/discreet"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/route"
)

// checkTimeout bounds how long /health waits for the store.
const checkTimeout = time.Second

// Config says what an API serves.
type Config struct {
	Runner      *patterns.Runner
	Store       patientapi.Store // asked by /health
	Timeout     time.Duration    // of a request, from its arrival; 0 means none
	BodyTimeout time.Duration    // to receive a body; 0 means 10 s
	Logger      *slog.Logger     // nil means that nothing is logged
}

// API is the service's http.Handler for clients. A new one is not ready: see
// SetReady. What its operators look at is apart: see Admin.
type API struct {
	cfg      Config
	pattern  string
	mux      *route.Mux
	ready    atomic.Bool
	outcomes [outcomeKinds]atomic.Uint64
	admin    *http.ServeMux
	registry *prometheus.Registry
	served   *prometheus.HistogramVec

	shed, unavailable, broken, panics, unhealthy *discreet.Log
}

// New returns the API of cfg, with metrics of its own.
func New(cfg Config) *API {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	pattern := cfg.Runner.Stats().Pattern
	a := &API{
		cfg:      cfg,
		pattern:  pattern,
		shed:     discreet.NewLog(cfg.Logger.With("pattern", pattern), slog.LevelWarn, "shedding", "refused"),
		admin:    http.NewServeMux(),
		registry: prometheus.NewRegistry(),
		served: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "patientapi_http_request_duration_seconds",
			Help:    "Time to answer, by route and status code.",
			Buckets: []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		}, []string{"route", "code"}),
	}
	failing := func(message string) *discreet.Log {
		return discreet.NewLog(cfg.Logger, slog.LevelError, message, "failures")
	}
	a.unavailable, a.broken = failing("the store failed"), failing("requests failed")
	a.panics, a.unhealthy = failing("handlers did not return"), failing("the store does not answer")
	a.registry.MustRegister(a.served, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if c := cfg.Runner.Collector(); c != nil {
		a.registry.MustRegister(c)
	}
	a.registry.MustRegister(cacheMetrics(cfg.Runner)...)
	a.mux = must(a.operations())
	must(0, a.mux.Document("GET /openapi.json", about))
	must(0, a.mux.Handle("GET /{$}", http.HandlerFunc(a.index)))
	for pattern, h := range map[string]http.HandlerFunc{"GET /livez": a.livez, "GET /readyz": a.readyz} {
		must(0, a.mux.Handle(pattern, h))
		a.admin.HandleFunc(pattern, h) // where clients cannot take the last connection
	}
	a.admin.HandleFunc("GET /health", a.health)
	a.admin.Handle("GET /metrics", promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{}))
	return a
}

// Admin serves what is for those who run the service and not for its clients:
// /metrics and /health, and once more /livez and /readyz. Put it on a listener of its own, which clients cannot
// reach.
func (a *API) Admin() http.Handler { return a.admin }

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
		for _, l := range []*discreet.Log{a.shed, a.unavailable, a.broken, a.panics} {
			l.Flush(time.Now())
		}
	}
}
