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
	"sync"
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
type EarlyReturn struct{ Store Store }

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

// Uncleared owns its pooled patients correctly, from Get until the answer is
// encoded, and never clears them. The reader below sets the fields that the new
// patient has, as hand-written readers do; the other fields keep the values of the
// last patient.
type Uncleared struct {
	Store Store
	pool  sync.Pool
}

// Answer returns the JSON of a reply.
func (u *Uncleared) Answer(id string) ([]byte, error) {
	p, _ := u.pool.Get().(*Patient)
	if p == nil {
		p = new(Patient)
	}
	defer u.pool.Put(p)
	row, err := u.Store.Patient(id)
	if err != nil {
		return nil, err
	}
	p.ID, p.Name = row.ID, row.Name
	for _, list := range []struct {
		dst *[]string
		now []string
	}{{&p.Diagnoses, row.Diagnoses}, {&p.Medications, row.Medications}, {&p.Allergies, row.Allergies}} {
		if len(list.now) > 0 {
			*list.dst = list.now
		}
	}
	return json.Marshal(Reply{Success: true, Patient: p})
}
