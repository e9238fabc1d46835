// Package specimen is published code in a few lines of our own: the shapes in which a
// patient API was measured, with the faults of its pools, so that the lab can show what they
// do. DO NOT USE IT. The faults of its handlers are in the tests.
//
// Some are data races by design. The race detector would stop the program
// before the fault shows, so tests of those are skipped under -race.
package specimen

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// The published ways to answer a look-up, and what can be done about pooled replies.
const (
	Naive      = "naive"      // a goroutine for every request, without a bound
	WorkerPool = "workerpool" // workers on a buffered channel
	Optimized  = "optimized"  // the same with pooled replies, of which only those of failed look-ups are given back
	Warm       = "warm"       // corrected: the receiver gives every reply back
	Uncleared  = "uncleared"  // as corrected, but nobody clears: fields that the next patient lacks keep the last one's values

	// The worker gives the reply back before its receiver has encoded it. From then on
	// two requests own one object.
	SharedOnPut = "shared, cleared on Put" // as printed: what the receiver is about to encode is emptied
	SharedOnGet = "shared, cleared on Get" // the object keeps its patient until its next use
)

// ErrFull is the answer to a request that found no room in the queue.
var ErrFull = errors.New("specimen: the queue is full")

// Config is the size of a pool.
type Config struct {
	Workers, Queue int
	Wait           time.Duration // for room in the queue
}

// Service answers look-ups in one of the published ways.
type Service struct {
	pattern string
	store   Store
	wait    time.Duration
	jobs    chan *Request // nil: a goroutine for every request
	stop    chan struct{}
	workers sync.WaitGroup
	alive   atomic.Int64
	queued  atomic.Int64
	replies *replyPool // nil: a new reply for every look-up
}

// Request is a job: one look-up.
type Request struct {
	ctx    context.Context
	id     string
	found  chan *Reply
	failed chan error
}

// JobSize is what a job takes in the queue, in bytes: its entry, the job, two channels with
// one place each, and its id.
const JobSize = 8 + 48 + 112 + 112 + 8

// New starts the workers that the pattern has. Close ends them.
func New(pattern string, store Store, cfg Config) (*Service, error) {
	s := &Service{pattern: pattern, store: store, wait: cfg.Wait}
	switch pattern {
	case Naive:
		return s, nil
	case WorkerPool:
	case Optimized, Warm, Uncleared, SharedOnPut, SharedOnGet:
		s.replies = &replyPool{clearOnGet: pattern == SharedOnGet, clearOnPut: pattern != SharedOnGet && pattern != Uncleared}
	default:
		return nil, fmt.Errorf("specimen: there is no pattern %q", pattern)
	}
	s.jobs, s.stop = make(chan *Request, cfg.Queue), make(chan struct{})
	for range cfg.Workers {
		s.alive.Add(1)
		s.workers.Go(s.work)
	}
	return s, nil
}

func (s *Service) work() {
	defer s.alive.Add(-1)
	for {
		select {
		case <-s.stop:
			return
		case r, open := <-s.jobs:
			if !open {
				return
			}
			s.queued.Add(-1)
			s.answer(r)
		}
	}
}

// Look answers one request. The error is ErrFull, or that of the store or of ctx. The reply
// is the caller's until Release.
func (s *Service) Look(ctx context.Context, id string) (*Reply, error) {
	r, err := s.Submit(ctx, id)
	if err != nil {
		return nil, err
	}
	select {
	case reply := <-r.found:
		return reply, nil
	case err := <-r.failed:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Submit puts a request into the queue, or starts its goroutine.
func (s *Service) Submit(ctx context.Context, id string) (*Request, error) {
	r := &Request{ctx, id, make(chan *Reply, 1), make(chan error, 1)}
	if s.jobs == nil {
		s.alive.Add(1)
		go func() {
			defer s.alive.Add(-1)
			s.answer(r)
		}()
		return r, nil
	}
	select {
	case s.jobs <- r:
		s.queued.Add(1)
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(s.wait):
		return nil, ErrFull
	}
}

func (s *Service) answer(r *Request) {
	reply := s.replies.get()
	patient, err := s.store.Patient(r.id)
	if err != nil {
		r.failed <- err
		s.replies.put(reply)
		return
	}
	if reply == nil {
		reply = new(Reply)
	}
	if old := reply.Patient; old != nil && s.pattern == Uncleared {
		old.read(patient)
		patient = old
	}
	*reply = Reply{Success: true, Patient: patient, Timestamp: time.Now()}
	r.found <- reply
	if s.pattern == SharedOnPut || s.pattern == SharedOnGet {
		s.replies.put(reply)
	}
}

// Release gives a reply back that its receiver has written. As published, nobody did.
func (s *Service) Release(reply *Reply) {
	if s.pattern == Warm || s.pattern == Uncleared {
		s.replies.put(reply)
	}
}

// Replies returns how often the pool was asked for a reply so far and how often it had to
// make one; ok is false without a pool.
func (s *Service) Replies() (gets, made uint64, ok bool) {
	if ok = s.replies != nil; ok {
		gets, made = s.replies.gets.Load(), s.replies.made.Load()
	}
	return gets, made, ok
}

// Goroutines returns how many goroutines the service has now, without those of its
// callers.
func (s *Service) Goroutines() int { return int(s.alive.Load()) }

// Queued returns how many requests wait for a worker.
func (s *Service) Queued() int { return int(s.queued.Load()) }

// Close is the published shutdown: the queue is closed, the workers are told to stop, and
// those that have something left to do in the queue stop or go on at random. Nobody tells the
// callers of what stays there.
func (s *Service) Close() {
	if s.jobs != nil {
		close(s.jobs)
		close(s.stop)
		s.workers.Wait()
	}
}

// replyPool is the published pool of replies with its counters.
type replyPool struct {
	pool                   sync.Pool
	clearOnGet, clearOnPut bool
	gets, made             atomic.Uint64
}

func (p *replyPool) get() *Reply {
	if p == nil {
		return nil
	}
	p.gets.Add(1)
	reply, _ := p.pool.Get().(*Reply)
	if reply == nil {
		p.made.Add(1)
		reply = new(Reply)
	}
	if p.clearOnGet {
		*reply = Reply{}
	}
	return reply
}

func (p *replyPool) put(reply *Reply) {
	if p == nil || reply == nil {
		return
	}
	if p.clearOnPut {
		*reply = Reply{}
	}
	p.pool.Put(reply)
}

// Reply is the pooled object of the specimens, with the published five fields. It points to
// its patient, so that a racing reader sees another patient or none, never half of one.
type Reply struct {
	Success   bool      `json:"success"`
	Patient   *Patient  `json:"patient,omitempty"`
	Error     string    `json:"error,omitempty"`
	Timestamp time.Time `json:"timestamp"`
	RequestID string    `json:"request_id"`
}
