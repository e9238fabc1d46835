package workerpool

import (
	"context"
	"time"

	"github.com/spillway-go/spillway/internal/handoff"
)

// worker is one goroutine of the pool.
type worker struct {
	pool    *Pool
	place   *handoff.Worker
	entry   entry           // current job
	lv      int             // level of the entry
	end     handoff.End     // how the last job ended
	deliver *call           // call of an ended job whose caller is not notified yet
	inside  bool            // a job is running
	started time.Duration   // start of the job, if timed
	seen    context.Context // context of the job that the profile labels were last set for
	foreign bool            // the profile labels are not the pool's alone
	seq     uint64          // number of the job for the law, if sampled
	class   uint8           // class of the job for the law, if sampled
}

func (p *Pool) startWorker(place *handoff.Worker) {
	go (&worker{pool: p, place: place, foreign: true}).work()
}

// work runs jobs until the worker must end. If a job ends the goroutine, for example by
// runtime.Goexit, work continues on a new goroutine.
func (w *worker) work() {
	ended := false
	defer func() {
		if !ended {
			go w.work()
		}
	}()
	w.pool.arm()
	for w.serve() || w.place.Sleep() {
		w.pool.arm()
	}
	ended = true
}

// serve runs jobs until none is left. It returns true if a job panicked and the worker must go on.
// One deferred call catches the early end of any of these jobs.
func (w *worker) serve() (more bool) {
	defer func() {
		if w.inside {
			w.inside, more = false, true
			w.endBroken(recover())
		}
	}()
	for w.next() {
		w.run()
	}
	return false
}

// next takes the next job, then notifies the caller of the last job. The order lets the caller find
// its worker free. next returns false if no job is left.
func (w *worker) next() (ok bool) {
	if w.lv, ok = w.pool.queue.Take(w.place, w.end, &w.entry); ok {
		if w.pool.ctl.wantsSample(w.place.Turn) {
			w.seen = nil
		}
	} else {
		w.entry = entry{}
		w.unmark()
	}
	w.finish()
	return ok
}

// deliverTo notes the caller to notify of the last job. It returns false if the caller has left.
func (w *worker) deliverTo(c *call) bool {
	if !c.end() {
		return false
	}
	w.deliver = c
	return true
}

func (w *worker) finish() {
	if c := w.deliver; c != nil {
		w.deliver = nil
		c.finish()
	}
}
