package workerpool

import (
	"errors"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/handoff"
	"github.com/spillway-go/spillway/limit"
)

// ErrGoexit is the error of a job that called runtime.Goexit.
var ErrGoexit = errors.New("workerpool: job called runtime.Goexit")

// run runs the current job, unless its caller has left or its context has ended.
func (w *worker) run() {
	p, e := w.pool, &w.entry
	c := e.call()
	w.end = handoff.Void
	if c != nil && !c.begin() {
		return // its caller has left
	}
	if err := e.ctx.Err(); err != nil {
		w.cancelled(c, err)
		return
	}
	w.end = handoff.Ran
	w.setLabels()
	timed := e.timed()
	if timed {
		w.started = p.now()
		if e.sampled() {
			w.seq, w.class = p.ctl.begin(e.ctx, w.started, w.lv)
		}
	}
	w.inside = true
	err := e.job(e.ctx)
	w.inside = false
	if err != nil {
		p.ended[limit.OutcomeOf(err)].Add(1)
	}
	if c != nil {
		c.err = err
		w.deliverTo(c)
	}
	if timed {
		w.timed(err)
	}
}

// cancelled ends a job whose context ended before it was started.
func (w *worker) cancelled(c *call, err error) {
	if w.pool.cfg.OnDone != nil {
		w.setLabels()
	}
	accepted := w.entry.at()
	if c != nil {
		c.err = err
		w.deliverTo(c)
	}
	w.pool.report(accepted, Result{Context: w.entry.ctx, Err: err})
}

// timed ends a timed job.
func (w *worker) timed(err error) {
	p, n := w.pool, *w.entry.note
	if n.call == nil {
		p.notes.Put(w.entry.note)
	}
	w.entry.note = nil
	ended := p.now()
	if n.weight > 0 {
		seen := ended
		if p.ctl.law != nil {
			if p.ctl.queued() > 0 {
				// Yield once to measure how long the worker waits for a processor. If workers
				// outnumber processors, computing jobs show the cost in this wait, not in their run
				// times. The caller of the last job need not wait for the yield, unless OnDone
				// comes first.
				if p.cfg.OnDone == nil {
					w.finish()
				}
				runtime.Gosched()
			}
			seen = p.now()
		}
		p.ctl.sampled(sample{w.class, n.weight, n.at, w.started, ended, seen, w.seq, limit.OutcomeOf(err)})
	}
	p.report(n.at, Result{Context: w.entry.ctx, Err: err, Started: true, Waited: w.started - n.at, Ran: ended - w.started})
}

// endBroken ends a job that panicked with v, or that called Goexit if v is nil. serve calls it in a
// deferred function.
func (w *worker) endBroken(v any) {
	p, e := w.pool, &w.entry
	if v != nil {
		p.panicked.Add(1) // before the failure: Stats reads in the other order
	}
	p.ended[limit.Failed].Add(1)
	res := Result{Context: e.ctx, Err: ErrGoexit, Started: true}
	received := p.cfg.OnDone != nil
	var end *spillway.PanicError
	if v != nil {
		end = &spillway.PanicError{Value: v, Stack: debug.Stack()}
		res.Err = end
	}
	at, timed, weight := e.at(), e.timed(), uint64(0)
	if e.sampled() {
		weight = e.note.weight
	}
	if c := e.call(); c != nil {
		c.err, c.panicked, c.goexit = res.Err, end, v == nil
		received = w.deliverTo(c) || received
	}
	if v != nil && !received {
		panic(v) // nobody receives the panic: do not swallow it
	}
	if timed {
		ended := p.now()
		res.Waited, res.Ran = w.started-at, ended-w.started
		if weight > 0 { // an aborted job is no sample of run times
			p.ctl.sampled(sample{w.class, weight, at, w.started, ended, ended, w.seq, limit.Unknown})
		}
	}
	p.report(at, res)
}

// report reports the end of a job to OnDone. accepted is the submission time of the job, known for
// every job only if OnDone is set.
func (p *Pool) report(accepted time.Duration, res Result) {
	if p.cfg.OnDone == nil {
		return
	}
	if !res.Started {
		res.Waited = p.now() - accepted
	}
	p.cfg.OnDone(res)
}

// ended is an accepted job that will not run.
type ended struct {
	entry    entry
	err      error
	accepted time.Duration
}

// tellAll reports jobs that will not run to their callers, then to OnDone. A panic of OnDone on
// this goroutine thus leaves no other caller waiting forever.
func (p *Pool) tellAll(all []ended) {
	for i := range all {
		e := &all[i].entry
		all[i].accepted = e.at() // a note may belong to the caller, which may reuse the note after finish
		if c := e.call(); c != nil {
			c.err = all[i].err
			if c.end() {
				c.finish()
			}
		}
	}
	for _, e := range all {
		p.report(e.accepted, Result{Context: e.entry.ctx, Err: e.err})
	}
}
