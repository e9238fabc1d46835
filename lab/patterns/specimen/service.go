package specimen

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// The published ways to answer a look-up, and one that is corrected.
const (
	Naive      = "naive"      // a goroutine for every request, without a bound
	WorkerPool = "workerpool" // workers on a buffered channel
	Optimized  = "optimized"  // the same with pooled replies, of which only those of failed look-ups are given back
	Warm       = "warm"       // corrected: the receiver gives every reply back
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
	store   Store
	wait    time.Duration
	jobs    chan request // nil: a goroutine for every request
	workers sync.WaitGroup
	warm    bool
	replies *replyPool // nil: a new reply for every look-up
}

type request struct {
	id     string
	answer chan answer
}

type answer struct {
	reply *Reply
	err   error
}

// New starts the workers that the pattern has. Close ends them.
func New(pattern string, store Store, cfg Config) (*Service, error) {
	s := &Service{store: store, wait: cfg.Wait, warm: pattern == Warm}
	switch pattern {
	case Naive:
		return s, nil
	case WorkerPool:
	case Optimized, Warm:
		s.replies = new(replyPool)
	default:
		return nil, fmt.Errorf("specimen: no pattern %q: want %s, %s, %s or %s", pattern, Naive, WorkerPool, Optimized, Warm)
	}
	s.jobs = make(chan request, cfg.Queue)
	for range cfg.Workers {
		s.workers.Go(func() {
			for r := range s.jobs {
				r.answer <- s.lookUp(r.id)
			}
		})
	}
	return s, nil
}

// Look answers one request. The error is ErrFull or that of the store. The reply is the
// caller's until Release.
func (s *Service) Look(id string) (*Reply, error) {
	r := request{id, make(chan answer, 1)}
	if s.jobs == nil {
		go func() { r.answer <- s.lookUp(id) }()
	} else {
		select {
		case s.jobs <- r:
		case <-time.After(s.wait):
			return nil, ErrFull
		}
	}
	a := <-r.answer
	return a.reply, a.err
}

func (s *Service) lookUp(id string) answer {
	reply := s.replies.get()
	patient, err := s.store.Patient(id)
	if err != nil {
		s.replies.put(reply)
		return answer{err: err}
	}
	*reply = Reply{Success: true, Patient: patient}
	return answer{reply: reply}
}

// Release gives a reply back that its receiver has written. As published, nobody did:
// only Warm reuses it.
func (s *Service) Release(reply *Reply) {
	if s.warm {
		s.replies.put(reply)
	}
}

// Reuse returns what the pool of replies did so far; ok is false without a pool.
func (s *Service) Reuse() (r Reuse, ok bool) {
	if s.replies == nil {
		return Reuse{}, false
	}
	return Reuse{Gets: s.replies.gets.Load(), Made: s.replies.made.Load()}, true
}

// Close ends the workers. No request may be in progress.
func (s *Service) Close() {
	if s.jobs != nil {
		close(s.jobs)
		s.workers.Wait()
	}
}

// replyPool is the published pool of replies with its counters.
type replyPool struct {
	pool       sync.Pool
	gets, made atomic.Uint64
}

func (p *replyPool) get() *Reply {
	if p == nil {
		return new(Reply)
	}
	p.gets.Add(1)
	reply, _ := p.pool.Get().(*Reply)
	if reply == nil {
		p.made.Add(1)
		reply = new(Reply)
	}
	return reply
}

func (p *replyPool) put(reply *Reply) {
	if p != nil {
		*reply = Reply{}
		p.pool.Put(reply)
	}
}

// Reuse counts how often a pool of replies was asked and how often it had to make one.
type Reuse struct{ Gets, Made uint64 }

// Since returns what happened after an earlier count.
func (r Reuse) Since(earlier Reuse) Reuse {
	return Reuse{r.Gets - earlier.Gets, r.Made - earlier.Made}
}

// Reported is the published hit rate, 0 to 1. It counts every Get as a hit and every
// reply made as a miss, so a pool that reuses nothing reports a half.
func (r Reuse) Reported() float64 { return float64(r.Gets) / max(1, float64(r.Gets+r.Made)) }

// True is the share of Gets that reused a reply, 0 to 1.
func (r Reuse) True() float64 { return float64(r.Gets-r.Made) / max(1, float64(r.Gets)) }
