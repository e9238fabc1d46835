package workerpool

import (
	"errors"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// ErrGoexit is the error of a job that called runtime.Goexit.
var ErrGoexit = errors.New("workerpool: job called runtime.Goexit")

// spell runs jobs, the worker's own first, until there is none. True: one
// panicked, and the worker has to ask for the next. What ends a job early is
// caught here, once for all of them.
func (w *worker) spell() (broken bool) {
	var started time.Duration
	var seq uint64
	inside := false
	defer func() {
		if inside {
			broken = true
			w.broke(&w.entry, started, seq, recover())
		}
	}()
	p, e := w.pool, &w.entry
	for {
		c := e.call()
		if c != nil && !c.begin() { // its caller has left
			p.stale.Add(-1)
		} else if err := e.ctx.Err(); err != nil {
			w.cancelled(c, err)
		} else {
			w.mark(w.lv)
			timed := e.timed()
			if timed {
				started = p.now()
				if e.sampled() {
					seq = p.ctl.begin(p, started)
				}
			}
			inside = true
			err := e.job(e.ctx)
			inside = false
			if err != nil {
				p.tally.failed.Add(1)
			}
			if c != nil {
				w.owe(c)
			}
			if timed {
				w.timed(e, started, seq, err)
			}
		}
		if !w.next() {
			return false
		}
	}
}

// cancelled ends a job whose context ended before it was started.
func (w *worker) cancelled(c *call, err error) {
	p := w.pool
	p.tally.cancelled.Add(1)
	accepted := w.entry.at()
	if c != nil {
		c.err = err
		w.owe(c)
	}
	p.tell(accepted, Result{Err: err})
}

// timed ends a job whose time somebody wants to know.
func (w *worker) timed(e *entry, started time.Duration, seq uint64, err error) {
	p, n := w.pool, *e.note
	if n.call == nil {
		p.notes.Put(e.note)
	}
	e.note = nil
	ended := p.now()
	if n.weight > 0 {
		if p.ctl.law != nil && p.queued() > 0 {
			// Step back once to see how long it takes to get a processor: what
			// more workers than processors do to jobs that compute shows there,
			// not in their run times. The caller of the last job need not wait, unless
			// OnDone comes first.
			if p.cfg.OnDone == nil {
				w.finish()
			}
			runtime.Gosched()
		}
		p.sampled(w.lv, n.weight, n.at, started, ended, seq, limit.OutcomeOf(err))
	}
	p.tell(n.at, Result{Err: err, Started: true, Waited: started - n.at, Ran: ended - started})
}

// broke ends a job that panicked with v, or called Goexit, in the deferred call
// that follows.
func (w *worker) broke(e *entry, started time.Duration, seq uint64, v any) {
	p := w.pool
	p.tally.failed.Add(1)
	res := Result{Err: ErrGoexit, Started: true}
	told := p.cfg.OnDone != nil
	var end *spillway.PanicError
	if v != nil {
		p.tally.panicked.Add(1)
		end = &spillway.PanicError{Value: v, Stack: debug.Stack()}
		res.Err = end
	}
	if p.cfg.OnPanic == Crash && v != nil {
		panic(v)
	}
	if c := e.call(); c != nil {
		c.err, c.panicked, c.goexit = res.Err, end, v == nil
		told = w.owe(c) || told
	}
	if v != nil && !told {
		panic(v) // nobody waits and nobody is told: do not swallow it
	}
	if e.timed() {
		ended := p.now()
		res.Waited, res.Ran = started-e.note.at, ended-started
		if e.sampled() { // what was cut short is no sample of how long jobs run
			p.sampled(w.lv, e.note.weight, e.note.at, started, ended, seq, limit.Unknown)
		}
	}
	p.tell(e.at(), res)
}

// tell tells OnDone of the end of a job and when it was accepted, which OnDone
// makes every job know.
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

// tellAll tells everybody of jobs that will not run, OnDone last: should it panic
// on this goroutine, nobody else waits for ever. The caller does not hold the lock.
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
		p.tell(e.accepted, Result{Err: e.err})
	}
}
