package loadgen

import (
	"sync/atomic"
	"time"
)

// job is a request on its way to the goroutine that sends it.
type job struct {
	n        uint64
	intended time.Duration
}

// senders is the goroutines that send the requests of an open loop: as many as the most requests in
// flight so far. Between requests each goroutine waits for its next job.
type senders struct {
	*run
	jobs chan job
	size int          // goroutines; only dispatch changes it
	free atomic.Int64 // goroutines that wait for a job, less jobs that wait for a goroutine
}

// openLoop starts the goroutine that follows the schedule. The goroutine waits for the next start
// and never for the target, except at MaxInFlight.
func (r *run) openLoop() {
	r.spawn(func() {
		s := &senders{run: r, jobs: make(chan job, min(r.cfg.MaxInFlight, 1024))}
		defer close(s.jobs)
		p := newPacer(r)
		next := walk(r.cfg.Open)
		now := r.now()
		for n := uint64(0); ; n++ {
			at, more := next()
			if at > now { // requests that are already due are sent without reading the clock again
				var ok bool
				if now, ok = p.wait(at); !ok {
					if more {
						r.stopped.Store(true)
					}
					return
				}
			}
			if !more {
				return
			}
			if !s.dispatch(job{n, at}) {
				r.stopped.Store(true)
				return
			}
		}
	})
}

// dispatch gives j to a free goroutine or to a new one. At MaxInFlight j waits for a goroutine.
// dispatch returns false when nothing may be sent any more.
func (s *senders) dispatch(j job) bool {
	if s.free.Add(-1) < 0 {
		if s.size < s.cfg.MaxInFlight {
			s.free.Add(1)
			s.size++
			s.start(j)
			return true
		}
		s.waited.Add(1)
	}
	select {
	case s.jobs <- j:
		return true
	case <-s.sending.Done():
		return false
	}
}

// start starts a goroutine with its first job.
func (s *senders) start(j job) {
	rec := s.newRecorder()
	s.spawn(func() {
		for ok := true; ok; j, ok = <-s.jobs {
			if s.sending.Err() != nil {
				s.stopped.Store(true)
				return
			}
			s.send(rec, j.n, j.intended)
			s.free.Add(1)
		}
	})
}
