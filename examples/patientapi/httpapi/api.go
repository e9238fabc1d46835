// Package httpapi answers lookups of patients and clinicians over HTTP, under any pattern of
// package patterns.
//
// Everything that fails is answered as application/problem+json (RFC 9457).
// Overload is 503 with Retry-After. No answer and no log line repeats what a
// client sent, and logs hold nobody's data.
package httpapi

import (
	"encoding/json"
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
)

const (
	// MaxBatch is how many ids one batch may ask for.
	MaxBatch = 100
	// maxBody is what a batch request may weigh: a hundred ids, generously
	// written.
	maxBody = 16 << 10
	// checkTimeout bounds how long /health waits for the store.
	checkTimeout = time.Second
)

// Config says what an API serves.
type Config struct {
	Runner  *patterns.Runner
	Store   patientapi.Store // asked by /health
	Timeout time.Duration    // of a request, from its arrival; 0 means none
	Logger  *slog.Logger     // nil means that nothing is logged
}

// API is the service's http.Handler. A new one is not ready: see SetReady.
type API struct {
	cfg      Config
	pattern  string
	mux      *http.ServeMux
	ready    atomic.Bool
	outcomes [outcomeKinds]atomic.Uint64
	shed     shedLog
	registry *prometheus.Registry
	served   *prometheus.HistogramVec
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
		mux:      http.NewServeMux(),
		shed:     shedLog{logger: cfg.Logger, pattern: pattern},
		registry: prometheus.NewRegistry(),
		served: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "patientapi_http_request_duration_seconds",
			Help:    "Time to answer, by route and status code.",
			Buckets: []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		}, []string{"route", "code"}),
	}
	a.registry.MustRegister(a.served, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if c := cfg.Runner.Collector(); c != nil {
		a.registry.MustRegister(c)
	}
	a.registry.MustRegister(cacheMetrics(cfg.Runner)...)
	a.route("GET /api/v1/patients/{id}", a.patient)
	a.route("GET /api/v1/patients", a.patient)
	a.route("POST /api/v1/patients:batch", a.batch)
	a.route("GET /api/v1/clinicians", a.clinicians)
	a.mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "alive\n") })
	a.mux.HandleFunc("GET /readyz", a.readyz)
	a.mux.HandleFunc("GET /health", a.health)
	a.mux.Handle("GET /metrics", promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{}))
	a.mux.HandleFunc("GET /{$}", a.index)
	return a
}

// SetReady says whether /readyz sends clients here: not while starting, not
// while draining, and never by load.
func (a *API) SetReady(ready bool) {
	a.ready.Store(ready)
	if !ready {
		a.shed.flush(time.Now())
	}
}

// handler answers a request of the API, or returns why it did not. What it
// returns was not answered yet.
type handler func(http.ResponseWriter, *http.Request) error

// patient answers a lookup by path or by query.
func (a *API) patient(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if id == "" {
		id = r.URL.Query().Get("id")
	}
	resp, err := a.cfg.Runner.Lookup(r.Context(), id)
	if err != nil {
		return err
	}
	defer resp.Release() // written by then
	return writeJSON(w, http.StatusOK, &resp.Patient)
}

// batch answers a lookup of many.
func (a *API) batch(w http.ResponseWriter, r *http.Request) error {
	ids, err := readBatch(w, r)
	if err != nil {
		return err
	}
	resp, err := a.cfg.Runner.LookupBatch(r.Context(), ids)
	if err != nil {
		return err
	}
	defer resp.Release() // written by then
	return writeJSON(w, http.StatusOK, &resp.Batch)
}

func readBatch(w http.ResponseWriter, r *http.Request) ([]string, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, &problem{Status: http.StatusUnsupportedMediaType, Type: "unsupported-media-type",
			Detail: "send application/json"}
	}
	var body struct {
		IDs []string `json:"ids"`
	}
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&body)
	if err == nil && decoder.More() {
		err = errors.New("more than one value")
	}
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		return nil, &problem{Status: http.StatusRequestEntityTooLarge, Type: "body-too-large",
			Detail: "ask for fewer patients: a body may have 16 KiB"}
	}
	switch {
	case err != nil && r.Context().Err() != nil:
		return nil, r.Context().Err()
	case err != nil:
		return nil, &problem{Status: http.StatusBadRequest, Type: "malformed-body",
			Detail: `send one JSON object such as {"ids":["P000001","P000002"]}`}
	case len(body.IDs) == 0 || len(body.IDs) > MaxBatch:
		return nil, &problem{Status: http.StatusBadRequest, Type: "batch-size",
			Detail: "ask for 1 to 100 ids at once"}
	}
	return body.IDs, nil
}

// writeJSON answers with v. The encoder writes only when all of v is encoded, so
// a value that does not encode is an error that can still be answered.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if status != http.StatusOK {
		w.WriteHeader(status)
	}
	err := json.NewEncoder(w).Encode(v)
	if _, bad := errors.AsType[*json.UnsupportedValueError](err); bad {
		return err
	}
	return nil // a client that left is nobody's error
}

func text(w http.ResponseWriter, status int, s string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(s))
}
