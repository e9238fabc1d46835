package workerpool

import (
	"errors"
	"runtime/debug"
	"time"

	"github.com/spillway-go/spillway"
)

// ErrGoexit is the error of a job that called runtime.Goexit.
var ErrGoexit = errors.New("workerpool: job called runtime.Goexit")

// worker is one goroutine of the pool. wake carries its next entry while it is
// parked.
type worker struct {
	pool *Pool
	wake chan entry
}

// hand gives a parked worker its next entry. wake has room for it, so this
// never blocks.
func (w *worker) hand(e entry) { w.wake <- e }

// work runs e and whatever comes after it, until the worker is retired.
func (w *worker) work(e entry) {
	var res Result
	returned := false
	defer func() {
		if !returned { // the job called Goexit, and took this goroutine with it
			w.pool.replace(res)
		}
	}()
	for ok := true; ok; {
		w.pool.execute(e, &res)
		e, ok = w.next(res)
	}
	returned = true
}

// next counts the end of the last entry and returns the one to run now. It
// parks while there is none, and returns false when the worker is to end.
func (w *worker) next(last Result) (entry, bool) {
	p := w.pool
	p.mu.Lock()
	p.count(last)
	if e, ok := p.take(); ok {
		p.mu.Unlock()
		return e, true
	}
	p.settle()
	if p.closed != 0 {
		p.workers--
		p.mu.Unlock()
		return entry{}, false
	}
	if w.wake == nil {
		w.wake = make(chan entry, 1)
	}
	p.parked = append(p.parked, w)
	p.mu.Unlock()
	return w.park()
}

// park waits for an entry, for the end of the pool, or for the idle timeout.
func (w *worker) park() (entry, bool) {
	p := w.pool
	timer := time.NewTimer(p.cfg.IdleTimeout)
	defer timer.Stop()
	for {
		select {
		case e, ok := <-w.wake:
			return e, ok
		case <-timer.C:
		}
		if p.retire(w) {
			return entry{}, false
		}
		// Kept: the pool is at its minimum, or an entry is on its way.
		timer.Reset(p.cfg.IdleTimeout)
	}
}

// take returns the oldest waiting entry and counts it as running. What a
// blocked submitter left behind moves up. The caller holds the lock.
func (p *Pool) take() (entry, bool) {
	e, ok := p.queue.Pop()
	if s := p.blocked.head; s != nil {
		p.blocked.remove(s)
		s.ready <- struct{}{}
		s.entry.at = p.now()
		if ok {
			p.queue.Push(s.entry)
		} else { // a pool without a queue
			e, ok = s.entry, true
		}
	}
	if ok {
		p.running++
	}
	return e, ok
}

// retire takes a parked worker out of the pool if the pool can spare it.
func (p *Pool) retire(w *worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.workers <= p.cfg.MinWorkers {
		return false
	}
	for i, other := range p.parked {
		if other == w {
			p.parked = append(p.parked[:i], p.parked[i+1:]...)
			p.workers--
			return true
		}
	}
	return false
}

// replace stands in for a worker whose goroutine a job ended: it starts another
// one if there is work for it.
func (p *Pool) replace(last Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(last)
	if e, ok := p.take(); ok {
		go (&worker{pool: p}).work(e)
		return
	}
	p.workers--
	p.settle()
}

// count enters the end of a running entry. The caller holds the lock.
func (p *Pool) count(res Result) {
	p.running--
	c := &p.counts
	if !res.Started {
		c.cancelled++
		return
	}
	c.completed++
	p.drain.Add(p.now(), 1)
	_, panicked := errors.AsType[*spillway.PanicError](res.Err)
	if panicked {
		c.panicked++
	}
	if res.Err != nil {
		c.failed++
	}
	if !panicked && res.Err != ErrGoexit { // what was cut short is no latency sample
		p.runTime.Record(int64(res.Ran))
	}
}

// settle tells drains when nothing is left. The caller holds the lock.
func (p *Pool) settle() {
	if p.idle != nil && p.empty() {
		close(p.idle)
		p.idle = nil
	}
}

func (p *Pool) empty() bool {
	return p.running == 0 && p.queue.Len() == 0 && p.blocked.n == 0
}

// execute runs one entry, or discards it if its context has ended, and tells
// OnDone. A panic passes through unless OnDone is there to be told; Goexit
// always does, with res filled in.
func (p *Pool) execute(e entry, res *Result) {
	started := p.now()
	*res = Result{Waited: started - e.at}
	if err := e.ctx.Err(); err != nil {
		e.task.discard(err)
		res.Err = err
		p.tell(*res)
		return
	}
	p.mu.Lock()
	p.counts.started++
	p.queueWait.Record(int64(res.Waited))
	p.mu.Unlock()

	res.Started = true
	res.Err = ErrGoexit // unless the task comes back
	defer func() {
		if res.Err == ErrGoexit && p.cfg.OnDone != nil {
			if v := recover(); v != nil {
				res.Err = &spillway.PanicError{Value: v, Stack: debug.Stack()}
			}
		}
		res.Ran = p.now() - started
		p.tell(*res)
	}()
	res.Err = e.task.run(e.ctx)
}

func (p *Pool) tell(res Result) {
	if p.cfg.OnDone != nil {
		p.cfg.OnDone(res)
	}
}
