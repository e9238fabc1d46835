package httpapi

import (
	"context"
	_ "embed"
	"encoding/json"
	"html/template"
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/internal/discreet"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
)

func (a *API) livez(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "alive\n") }

func (a *API) readyz(w http.ResponseWriter, _ *http.Request) {
	if !a.ready.Load() {
		text(w, http.StatusServiceUnavailable, "starting or draining\n")
		return
	}
	if a.cfg.AuditClosed && a.unrecorded() != nil { // all that a client can get here is 503
		text(w, http.StatusServiceUnavailable, "accesses cannot be put on record\n")
		return
	}
	text(w, http.StatusOK, "ready\n")
}

type health struct {
	Status  string         `json:"status"` // ok, draining or failing
	Pattern patterns.Stats `json:"pattern"`
	Store   string         `json:"store"` // ok, or does not answer
	Audit   string         `json:"audit"` // ok, off, or why accesses cannot be put on record
	Build   build          `json:"build"`
}

type build struct {
	Go       string `json:"go"`
	Version  string `json:"version,omitempty"`
	Revision string `json:"revision,omitempty"`
}

// unrecorded says why accesses cannot be put on record now.
func (a *API) unrecorded() error {
	if a.cfg.Unrecorded == nil {
		return nil
	}
	return a.cfg.Unrecorded()
}

// health answers 200 while the store answers and accesses can be put on record, and 503
// otherwise.
func (a *API) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	h := health{Status: "ok", Pattern: a.cfg.Runner.Stats(), Store: "ok", Audit: "ok", Build: buildInfo()}
	h.Pattern.QueueWait, h.Pattern.Service = nil, nil // /metrics has them
	status := http.StatusOK
	if err := a.cfg.Health.Ping(ctx); err != nil {
		a.unhealthy.Add(time.Now(), "error", discreet.Text(err.Error()))
		h.Status, h.Store, status = "failing", "does not answer", http.StatusServiceUnavailable
	} else if !a.ready.Load() {
		h.Status = "draining"
	}
	if a.cfg.Unrecorded == nil {
		h.Audit = "off"
	} else if err := a.unrecorded(); err != nil {
		h.Status, h.Audit, status = "failing", discreet.Text(err.Error()), http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(h)
}

func text(w http.ResponseWriter, status int, s string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(s))
}

func buildInfo() build {
	b := build{Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = s.Value
			}
		}
	}
	return b
}

//go:embed index.html
var indexSource string

var indexPage = template.Must(template.New("index").Parse(indexSource))

func (a *API) index(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	_ = indexPage.Execute(w, map[string]any{
		"Pattern": a.pattern, "Patterns": patterns.Names(), "Base": scheme + r.Host, "MaxBatch": MaxBatch, "Clinicians": exampleClinicians,
	})
}
