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

// crew is the goroutines that send the requests of an open loop: as many as
// were ever in flight at one time, each waiting for its next job in between.
type crew struct {
	*run
	jobs chan job
	size int          // goroutines; only dispatch changes it
	free atomic.Int64 // goroutines that wait for a job, less jobs that wait for a goroutine
}

// openLoop starts the goroutine that follows the schedule. It waits for time
// and never for the target, except at MaxInFlight.
func (r *run) openLoop() {
	r.spawn(func() {
		c := &crew{run: r, jobs: make(chan job, min(r.cfg.MaxInFlight, 1024))}
		defer close(c.jobs)
		p := newPacer(r)
		next := walk(r.cfg.Open)
		var now time.Duration
		for n := uint64(0); ; n++ {
			at, more := next()
			if at > now { // whatever is due by now is sent without looking at the clock again
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
			if !c.dispatch(job{n, at}) {
				r.stopped.Store(true)
				return
			}
		}
	})
}

// dispatch gives j to a free goroutine or to a new one. At MaxInFlight j waits
// for a goroutine. It is false when nothing may be sent any more.
func (c *crew) dispatch(j job) bool {
	if c.free.Add(-1) < 0 {
		if c.size < c.cfg.MaxInFlight {
			c.free.Add(1)
			c.size++
			c.hire(j)
			return true
		}
		c.waited.Add(1)
	}
	select {
	case c.jobs <- j:
		return true
	case <-c.sending.Done():
		return false
	}
}

// hire starts a goroutine with its first job.
func (c *crew) hire(j job) {
	rec := c.newRecorder()
	c.spawn(func() {
		for ok := true; ok; j, ok = <-c.jobs {
			if c.sending.Err() != nil {
				c.stopped.Store(true)
				return
			}
			c.send(rec, j.n, j.intended)
			c.free.Add(1)
		}
	})
}
