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

// run runs the job at hand, unless it is not wanted any more.
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
	w.mark()
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
		p.failed.Add(1)
	}
	if c != nil {
		w.owe(c)
	}
	if timed {
		w.timed(err)
	}
}

// cancelled ends a job whose context ended before it was started.
func (w *worker) cancelled(c *call, err error) {
	if w.pool.cfg.OnDone != nil {
		w.mark()
	}
	accepted := w.entry.at()
	if c != nil {
		c.err = err
		w.owe(c)
	}
	w.pool.tell(accepted, Result{Context: w.entry.ctx, Err: err})
}

// timed ends a job whose time is wanted.
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
				// Step back once to see how long it takes to get a processor: what
				// more workers than processors do to jobs that compute shows there,
				// not in their run times. The caller of the last job need not wait,
				// unless OnDone comes first.
				if p.cfg.OnDone == nil {
					w.finish()
				}
				runtime.Gosched()
			}
			seen = p.now()
		}
		p.ctl.sampled(sample{w.class, n.weight, n.at, w.started, ended, seen, w.seq, limit.OutcomeOf(err)})
	}
	p.tell(n.at, Result{Context: w.entry.ctx, Err: err, Started: true, Waited: w.started - n.at, Ran: ended - w.started})
}

// broke ends a job that panicked with v, or called Goexit, in the deferred call
// that follows.
func (w *worker) broke(v any) {
	p, e := w.pool, &w.entry
	p.failed.Add(1)
	res := Result{Context: e.ctx, Err: ErrGoexit, Started: true}
	told := p.cfg.OnDone != nil
	var end *spillway.PanicError
	if v != nil {
		p.panicked.Add(1)
		end = &spillway.PanicError{Value: v, Stack: debug.Stack()}
		res.Err = end
	}
	if p.cfg.OnPanic == Crash && v != nil {
		panic(v)
	}
	at, timed, weight := e.at(), e.timed(), uint64(0)
	if e.sampled() {
		weight = e.note.weight
	}
	if c := e.call(); c != nil {
		c.err, c.panicked, c.goexit = res.Err, end, v == nil
		told = w.owe(c) || told
	}
	if v != nil && !told {
		panic(v) // there is no one to tell: do not swallow it
	}
	if timed {
		ended := p.now()
		res.Waited, res.Ran = w.started-at, ended-w.started
		if weight > 0 { // what was cut short is no sample of how long jobs run
			p.ctl.sampled(sample{w.class, weight, at, w.started, ended, ended, w.seq, limit.Unknown})
		}
	}
	p.tell(at, res)
}

// tell reports the end of a job to OnDone. It needs to know when the job was
// accepted, which jobs keep only if there is an OnDone.
func (p *Pool) tell(accepted time.Duration, res Result) {
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

// tellAll tells of jobs that will not run, OnDone last: should it panic
// on this goroutine, no other caller waits for ever.
func (p *Pool) tellAll(all []ended) {
	for i := range all {
		e := &all[i].entry
		all[i].accepted = e.at() // the note may be the caller's own, which goes its way
		if c := e.call(); c != nil {
			c.err = all[i].err
			if c.end() {
				c.finish()
			}
		}
	}
	for _, e := range all {
		p.tell(e.accepted, Result{Context: e.entry.ctx, Err: e.err})
	}
}
