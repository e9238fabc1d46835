// Package specimen is published code in a few lines of our own: the shapes in which a
// patient API was measured, and the faults of its handlers and pools, so that the lab can
// show what they do. DO NOT USE IT. Each specimen says what is wrong with it.
//
// Some are data races by design. The race detector would stop the program
// before the fault shows, so tests of those are skipped under -race.
package specimen

import (
	"encoding/json"
	"fmt"
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

// Discipline is what a SharedReply pool does about clearing.
type Discipline uint8

const (
	ClearOnPut Discipline = iota // as printed: what the receiver is about to encode is emptied
	ClearOnGet                   // the object keeps its patient until its next use
)

// SharedReply is a worker pool whose workers return the pooled reply to the pool
// before its receiver has encoded it. From then on two requests own one object.
type SharedReply struct {
	store      Store
	discipline Discipline
	pool       sync.Pool
	jobs       chan sharedJob
	workers    sync.WaitGroup
}

type sharedJob struct {
	id    string
	reply chan *Reply
}

// NewSharedReply starts that many workers. Close ends them.
func NewSharedReply(store Store, workers, queue int, d Discipline) *SharedReply {
	h := &SharedReply{store: store, discipline: d, jobs: make(chan sharedJob, queue)}
	h.pool.New = func() any { return new(Reply) }
	for range workers {
		h.workers.Go(h.work)
	}
	return h
}

func (h *SharedReply) work() {
	for job := range h.jobs {
		reply := h.pool.Get().(*Reply)
		if h.discipline == ClearOnGet {
			*reply = Reply{}
		}
		patient, err := h.store.Patient(job.id)
		reply.Success = err == nil
		reply.Patient = patient
		job.reply <- reply
		if h.discipline == ClearOnPut {
			*reply = Reply{}
		}
		h.pool.Put(reply)
	}
}

// Answer returns the JSON of a reply. Encoding is the receiver's part, as in a
// handler, after its other work. A reply that is cleared in the middle of it makes
// the encoder panic, which net/http would catch: an error.
func (h *SharedReply) Answer(id string, first func()) (body []byte, err error) {
	job := sharedJob{id, make(chan *Reply, 1)}
	h.jobs <- job
	reply := <-job.reply
	first()
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the reply changed while it was encoded: %v", v)
		}
	}()
	return json.Marshal(reply)
}

// Close ends the workers. No request may be in progress.
func (h *SharedReply) Close() {
	close(h.jobs)
	h.workers.Wait()
}

// Uncleared owns its pooled patients correctly, from Get until the answer is
// encoded, and never clears them. The reader below sets the fields that the new
// patient has, as hand-written readers do; the other fields keep the values of the
// last patient.
type Uncleared struct {
	Store Store
	pool  sync.Pool
}

// Answer returns the JSON of a patient.
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
	return json.Marshal(p)
}
