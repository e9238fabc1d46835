// Package specimen reproduces faults of published code, each in a few lines of our
// own, so that the lab can show their effect. DO NOT USE IT. Each specimen says what
// is wrong with it; the correct counterpart is the patient API in
// examples/patientapi.
//
// Some are data races by design. The race detector would stop the program
// before the fault shows, so tests of those are skipped under -race.
package specimen

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// Patients is the store that the specimens look up in.
type Patients interface {
	Patient(ctx context.Context, id string, dst *patientapi.Patient) error
}

// Reply is the pooled object of the specimens. It points to its patient, so
// that a racing reader sees another patient or none, never half of one.
type Reply struct {
	Success bool                `json:"success"`
	Patient *patientapi.Patient `json:"patient,omitempty"`
}

// EarlyReturn answers each request in a goroutine and returns at once. When
// ServeHTTP returns, net/http ends the response: the client gets an empty 200
// and the goroutine writes into nothing.
type EarlyReturn struct{ Store Patients }

func (h EarlyReturn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, ctx := r.PathValue("id"), context.WithoutCancel(r.Context())
	go func() {
		// net/http may panic in a writer that is used after the end.
		defer func() { _ = recover() }()
		var p patientapi.Patient
		reply := Reply{Success: true, Patient: &p}
		if h.Store.Patient(ctx, id, &p) != nil {
			reply = Reply{}
		}
		_ = json.NewEncoder(w).Encode(reply)
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
	store      Patients
	discipline Discipline
	pool       sync.Pool
	jobs       chan sharedJob
	workers    sync.WaitGroup
}

type sharedJob struct {
	ctx   context.Context
	id    string
	reply chan *Reply
}

// NewSharedReply starts that many workers. Close ends them.
func NewSharedReply(store Patients, workers, queue int, d Discipline) *SharedReply {
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
		p := new(patientapi.Patient)
		err := h.store.Patient(job.ctx, job.id, p)
		reply.Success = err == nil
		reply.Patient = p
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
func (h *SharedReply) Answer(ctx context.Context, id string, first func()) (body []byte, err error) {
	job := sharedJob{ctx, id, make(chan *Reply, 1)}
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
	Store Patients
	pool  sync.Pool
}

// Answer returns the JSON of a patient.
func (u *Uncleared) Answer(ctx context.Context, id string) ([]byte, error) {
	p, _ := u.pool.Get().(*patientapi.Patient)
	if p == nil {
		p = new(patientapi.Patient)
	}
	defer u.pool.Put(p)
	var row patientapi.Patient
	if err := u.Store.Patient(ctx, id, &row); err != nil {
		return nil, err
	}
	lists := *p
	*p = row
	p.Diagnoses = orOld(row.Diagnoses, lists.Diagnoses)
	p.Medications = orOld(row.Medications, lists.Medications)
	p.Allergies = orOld(row.Allergies, lists.Allergies)
	p.Visits = orOld(row.Visits, lists.Visits)
	return json.Marshal(p)
}

func orOld[T any](now, old []T) []T {
	if len(now) == 0 {
		return old
	}
	return slices.Clone(now)
}

// CountedPool is the published reply pool: its "hit" counter counts every Get,
// and only the path of a failed look-up puts an object back. So it reports a
// hit rate of 1/(1 + (1 − error rate)), 51 % at 5 % errors, independent of reuse.
type CountedPool struct {
	pool            sync.Pool
	gets, made, put atomic.Uint64
}

// Look answers one request with that discipline.
func (c *CountedPool) Look(ctx context.Context, store Patients, id string) (*Reply, error) {
	c.gets.Add(1)
	reply, _ := c.pool.Get().(*Reply)
	if reply == nil {
		c.made.Add(1)
		reply = new(Reply)
	}
	*reply = Reply{}
	p := new(patientapi.Patient)
	if err := store.Patient(ctx, id, p); err != nil {
		*reply = Reply{}
		c.put.Add(1)
		c.pool.Put(reply)
		return nil, err
	}
	*reply = Reply{Success: true, Patient: p}
	return reply, nil // and it is never returned to the pool
}

// ReportedHitRate is what the published counters show, 0 to 1.
func (c *CountedPool) ReportedHitRate() float64 {
	gets, made := float64(c.gets.Load()), float64(c.made.Load())
	return gets / max(1, gets+made)
}

// TrueReuseRate is the share of Gets that reused an object, 0 to 1.
func (c *CountedPool) TrueReuseRate() float64 {
	gets := c.gets.Load()
	return float64(gets-c.made.Load()) / max(1, float64(gets))
}
