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
	entry   entry           // the job at hand
	lv      int             // of the entry
	end     handoff.End     // of the last job
	deliver *call           // ended, and its caller not told yet
	inside  bool            // the job
	started time.Duration   // the job, if it is timed
	seen    context.Context // for whose jobs the profile labels are set
	foreign bool            // the labels are those of some context, and not the pool's alone
	seq     uint64          // of the job for the law, if it is sampled
	class   uint8           // the same
}

func (p *Pool) startWorker(place *handoff.Worker) {
	go (&worker{pool: p, place: place, foreign: true}).work()
}

// work runs jobs until the worker is to end. When a job ends the goroutine, as
// runtime.Goexit does, another goroutine goes on.
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

// serve runs jobs until there is none. True: one panicked, and the worker goes on.
// What ends a job early is caught here, once for all of them.
func (w *worker) serve() (more bool) {
	defer func() {
		if w.inside {
			w.inside, more = false, true
			w.broke(recover())
		}
	}()
	for w.next() {
		w.run()
	}
	return false
}

// next takes the job to run now. Then it tells the caller of the last one, which
// so finds its worker free. It returns false when there is none.
func (w *worker) next() (ok bool) {
	if w.lv, ok = w.pool.queue.Take(w.place, w.end, &w.entry); ok {
		if w.pool.ctl.took(w.place.Turn) {
			w.seen = nil
		}
	} else {
		w.entry = entry{}
		w.unmark()
	}
	w.finish()
	return ok
}

// owe notes the caller that is to be told of the last job, unless it has left.
func (w *worker) owe(c *call) bool {
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
