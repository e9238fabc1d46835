package workerpool

import (
	"cmp"
	"context"
	"math/bits"
	"runtime/pprof"
	"time"

	"github.com/spillway-go/spillway"
)

// worker is one goroutine of the pool. Between jobs it belongs to itself; while
// it is parked its fields belong to whoever holds the pool's lock.
type worker struct {
	pool    *Pool
	wake    chan struct{}
	entry   entry         // to be run first, if any
	lv      int           // of the entry
	exit    bool          // told to end, by whoever woke it
	ends    bool          // its own decision
	since   time.Duration // the first look that found it parked; 0: none yet
	turns   uint64
	level   int   // that its profile labels say; -1: none yet
	deliver *call // ended, and its caller not told yet
}

// idler returns an idle worker, or a new one. The caller holds the lock.
func (p *Pool) idler() *worker {
	if n := len(p.parked); n > 0 {
		w := p.parked[n-1]
		p.parked[n-1] = nil
		p.parked = p.parked[:n-1]
		return w
	}
	p.workers++
	return &worker{pool: p, level: -1}
}

// start lets a worker that idler returned run. The caller has published waking.
func (w *worker) start() {
	if w.wake != nil {
		w.wake <- struct{}{}
		return
	}
	w.wake = make(chan struct{}, 1)
	go w.work(false)
}

// hand gives e to a worker without a job, and unlocks.
func (p *Pool) hand(e entry, lv int) {
	w := p.idler()
	w.entry, w.lv = e, lv
	p.active++
	p.arm()
	p.publish(waking)
	p.mu.Unlock()
	w.start()
}

// wake wakes a worker if there is a job that nobody comes for.
func (p *Pool) wake() {
	p.mu.Lock()
	p.wakeAndUnlock()
}

func (p *Pool) wakeAndUnlock() {
	if p.active >= p.limit || p.state.Load()&waking != 0 || p.queued() == 0 {
		p.publish(0)
		p.mu.Unlock()
		return
	}
	w := p.idler()
	p.arm()
	p.publish(waking)
	p.mu.Unlock()
	w.start()
}

// work runs jobs until the worker is retired. When a job ends the goroutine, as
// runtime.Goexit does, another goroutine goes on.
func (w *worker) work(on bool) {
	retired := false
	defer func() {
		if !retired {
			w.level = -1
			go w.work(true)
		}
	}()
	for !w.exit && !w.ends {
		ok := true
		switch {
		case on:
			on = false
			ok = w.next()
		case w.entry.ctx != nil:
			w.arrive()
		default:
			ok = w.claim()
		}
		for ok && w.spell() {
			ok = w.next()
		}
		if !w.ends {
			<-w.wake
		}
	}
	retired = true
}

// arrive says that a worker that was woken runs. It wakes the next one if there
// are jobs left.
func (w *worker) arrive() {
	p := w.pool
	if s := p.state.And(^uint64(waking)); s&spare != 0 && p.queued() > 0 {
		p.wake()
	}
}

// claim takes the first job of a worker that was woken without one.
func (w *worker) claim() bool {
	p := w.pool
	p.mu.Lock()
	p.active++
	p.publish(shaky)
	p.state.And(^uint64(waking))
	if p.active > p.limit || !w.pop(true) { // it may have been lowered since
		return w.rest()
	}
	woken := p.admit()
	p.wakeAndUnlock()
	wakeAll(woken)
	return true
}

// next takes the job to run now, and tells the caller of the last one. It
// returns false when there is none: then the worker is parked, or is to end.
func (w *worker) next() bool {
	p, empty := w.pool, false
	if s := p.state.Load(); s&(over|fronted|queuing|reserves) == 0 || s&(over|fronted) == 0 && p.short.Load() && (p.called.Load() || p.ahead(levels-1) > int(p.half.Load())) {
		if w.pop(false) {
			if w.deliver != nil {
				w.finish()
			}
			return true
		}
		empty = true
	}
	p.mu.Lock()
	var woken *waiter
	// It ran dry before the submitter on its way came to fill it.
	dry := p.nWaiting > 0 && p.half.Load() >= longQueue && p.queued() == 0
	if dry {
		woken = p.admit()
	}
	if empty && p.nWaiting == 0 && p.inFront == 0 && !dry || p.active > p.limit || !w.pop(true) {
		ok := w.rest() // which looks again
		wakeAll(woken)
		return ok
	}
	if !dry {
		woken = p.admit()
	}
	p.wakeAndUnlock() // several may have been let in
	w.finish()
	wakeAll(woken)
	return true
}

// rest parks a worker without a job, unless there is one after all. The caller
// holds the lock; it is released.
func (w *worker) rest() (ok bool) {
	p := w.pool
	woken := p.callUp()
	w.entry = entry{}
	p.active--
	if p.nWaiting > 0 && p.active < p.limit {
		for lv := range p.waiting { // a pool whose queue has no room at all
			if s := p.waiting[lv].head; s != nil {
				p.unqueue(s)
				p.accepted++
				w.entry, w.lv, ok = s.entry, lv, true
				s.prev, woken = woken, s
				break
			}
		}
	}
	if !ok && p.closed == 0 {
		w.since = 0
		p.parked = append(p.parked, w)
		p.arm()
	}
	if !ok {
		// Once this is published, whoever pushes sees it and wakes a worker; what
		// was pushed before is seen here.
		p.publish(0)
		if p.active < p.limit && p.queued() > 0 {
			p.publish(shaky)
			if ok = w.pop(true); ok && p.closed == 0 {
				p.parked = p.parked[:len(p.parked)-1]
			}
			p.publish(0)
		}
	}
	switch {
	case ok:
		p.active++
		p.publish(0)
	case p.closed != 0:
		p.workers--
		w.ends = true
	}
	p.settle()
	p.mu.Unlock()
	w.finish()
	wakeAll(woken)
	return ok
}

// owe notes who is to be told of the last job. False: it has left.
func (w *worker) owe(c *call) bool {
	if !c.end() {
		return false
	}
	w.deliver = c
	return true
}

// finish tells the caller of the last job, once the worker is at rest or has
// its next one: whoever waits for a job finds its worker free.
func (w *worker) finish() {
	if c := w.deliver; c != nil {
		w.deliver = nil
		c.finish()
	}
}

// pop takes the first job of the most important level, and now and then of the
// least important. Only with the lock does it see what a sweep left.
func (w *worker) pop(locked bool) bool {
	p := w.pool
	used := p.used.Load()
	if !locked && used&(used-1) == 0 {
		w.lv = bits.TrailingZeros32(used) % levels
		return p.rings[w.lv].Pop(&w.entry)
	}
	w.turns++
	for i := range levels {
		lv := i
		if w.turns%floor == 0 {
			lv = levels - 1 - i
		}
		if locked && len(p.front[lv]) > 0 {
			front := p.front[lv]
			p.inFront--
			p.rings[lv].Release(1)
			w.entry, w.lv, front[0] = front[0], lv, entry{}
			if p.front[lv] = front[1:]; len(front) == 1 {
				p.front[lv] = nil
			}
			return true
		}
		if used&(1<<lv) != 0 && p.rings[lv].Pop(&w.entry) {
			w.lv = lv
			return true
		}
	}
	return false
}

// mark sets the profile labels of a worker, when they change.
func (w *worker) mark(lv int) {
	if w.level != lv {
		w.level = lv
		pprof.SetGoroutineLabels(w.pool.labels[lv])
	}
}

// labelled returns the labels that a pool's workers carry, for each level.
func labelled(name string) (all [levels]context.Context) {
	for lv := range all {
		labels := pprof.Labels("pool", cmp.Or(name, "workerpool"), "priority", (spillway.Critical - spillway.Priority(lv)).String())
		all[lv] = pprof.WithLabels(context.Background(), labels)
	}
	return all
}
