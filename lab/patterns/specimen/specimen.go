// Package specimen is published code in a few lines of our own: the shapes in which a
// patient API was measured, and the faults of its handlers and pools, so that the lab can
// show what they do. DO NOT USE IT. Each specimen says what is wrong with it.
//
// Some are data races by design. The race detector would stop the program
// before the fault shows, so tests of those are skipped under -race.
package specimen

import (
	"encoding/json"
	"net/http"
)

// Reply is the pooled object of the specimens. It points to its patient, so
// that a racing reader sees another patient or none, never half of one.
type Reply struct {
	Success bool     `json:"success"`
	Patient *Patient `json:"patient,omitempty"`
}

// EarlyReturn answers each request in a goroutine and returns at once. When
// ServeHTTP returns, net/http ends the response: the client gets an empty 200
// and the goroutine writes into nothing.
type EarlyReturn struct{ Store *Simulated }

func (h EarlyReturn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	go func() {
		// net/http may panic in a writer that is used after the end.
		defer func() { _ = recover() }()
		patient, err := h.Store.Patient(id)
		_ = json.NewEncoder(w).Encode(Reply{Success: err == nil, Patient: patient})
	}()
}

// LateRetryAfter refuses every request and sets Retry-After after the body has been
// written, when the headers have already been sent: no client sees it.
func LateRetryAfter(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "overloaded, please retry", http.StatusServiceUnavailable)
	w.Header().Set("Retry-After", "1")
}
