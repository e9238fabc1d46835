package workerpool

import (
	"context"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/refusal"
)

// waiter is a submitter that waits for room. Its job waits with it, so that a
// worker can move the job into the queue without waking the submitter first.
type waiter struct {
	entry      entry
	level      int
	since      time.Duration
	ready      chan struct{}
	timer      *time.Timer
	refused    spillway.Reason
	next, prev *waiter
	place      place
	called     bool // from the reserve
}

// place is where a waiter is. It changes under the lock.
type place uint8

const (
	nowhere   place = iota // told of its end, or about to be
	inQueue                // waits for room
	inReserve              // its job was accepted; it is woken when another submitter is needed
)

// waiters is a queue in which anyone can leave.
type waiters struct {
	head, tail *waiter
	n          int
}

func (l *waiters) push(w *waiter) {
	w.prev, w.next = l.tail, nil
	if l.tail == nil {
		l.head = w
	} else {
		l.tail.next = w
	}
	l.tail = w
	l.n++
}

func (l *waiters) remove(w *waiter) {
	if w.prev == nil {
		l.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.next, w.prev = nil, nil
	l.n--
}

// enqueue makes a submitter wait. The caller holds the lock.
func (p *Pool) enqueue(e entry, lv int) *waiter {
	w, _ := p.free.Get().(*waiter)
	if w == nil {
		w = &waiter{ready: make(chan struct{}, 1)}
	}
	w.entry, w.level, w.since, w.place = e, lv, -1, inQueue
	if e.timed() {
		w.since = e.note.at
	} else if p.cfg.MaxWait > 0 {
		w.since = p.now()
	}
	p.waiting[lv].push(w)
	p.nWaiting++
	return w
}

// unqueue ends a wait for room. The caller holds the lock.
func (p *Pool) unqueue(w *waiter) {
	p.waiting[w.level].remove(w)
	p.nWaiting--
	w.place = nowhere
}

// await blocks until the job of w was accepted or refused, ctx ends, or MaxWait
// has passed.
func (p *Pool) await(ctx context.Context, w *waiter) error {
	gone, told, expired := ctx.Done(), true, false
	switch most := p.cfg.MaxWait; {
	case most > 0:
		if w.timer == nil {
			w.timer = time.NewTimer(most)
		} else {
			w.timer.Reset(most)
		}
		select {
		case <-w.ready:
		case <-gone:
			told = false
		case <-w.timer.C:
			told, expired = false, true
		}
		w.timer.Stop()
	case gone != nil:
		select {
		case <-w.ready:
		case <-gone:
			told = false
		}
	default:
		<-w.ready
	}
	if !told {
		p.mu.Lock()
		switch w.place {
		case inQueue:
			p.unqueue(w)
			p.publish(0)
			p.settle()
			p.mu.Unlock()
			if expired && ctx.Err() == nil {
				return p.turnAway(w, spillway.WaitTooLong)
			}
			p.tally.turned.Add(1)
			p.keep(w)
			return ctx.Err()
		case inReserve:
			p.reserve.remove(w)
			w.place = nowhere
			p.publish(0)
			p.mu.Unlock()
		default: // about to be told
			p.mu.Unlock()
			<-w.ready
		}
	}
	if w.refused != 0 {
		return p.turnAway(w, w.refused)
	}
	if w.called {
		w.called = false
		p.called.Store(false)
		p.relay()
	}
	p.keep(w)
	return nil // its own context may still cancel the job before it starts
}

// keep frees a waiter that nobody will wake any more.
func (p *Pool) keep(w *waiter) {
	w.entry, w.refused = entry{}, 0
	p.free.Put(w)
}

// turnAway makes a refusal for one who waited.
func (p *Pool) turnAway(w *waiter, reason spillway.Reason) error {
	n := p.tally.shards[0].refused[reason].Add(1)
	var advice time.Duration
	if reason == spillway.WaitTooLong {
		advice = time.Duration(p.cost.Load() * int64(p.queued()+1))
	}
	rej := *refusal.Of(reason).Near(advice, n)
	if w.since >= 0 {
		rej.Waited = p.now() - w.since
	}
	p.keep(w)
	return &rej
}

// admit moves the jobs of waiting submitters into the queue while there is room,
// and returns those to be woken once the lock is released. The caller holds it.
//
// Where the queue is worked off in a moment, one is woken at a time: it fills the
// queue before the next is needed. The others, with nothing to lose but that
// moment, are kept in reserve.
func (p *Pool) admit() (woken *waiter) {
	if p.nWaiting == 0 && p.reserve.n == 0 {
		return nil
	}
	short := p.short.Load()
	last := &woken
filling:
	for lv := range p.waiting {
		for w := p.waiting[lv].head; w != nil; w = p.waiting[lv].head {
			if !p.push(w.entry, lv, max(p.limit-p.active, 0)) {
				break filling
			}
			p.unqueue(w)
			if short && w.entry.call() == nil {
				w.place = inReserve
				p.reserve.push(w)
				continue
			}
			*last, last = w, &w.prev
		}
	}
	*last = p.callUp()
	return woken
}

// callUp returns a submitter in reserve, to be woken, unless one is on its way.
// The caller holds the lock.
func (p *Pool) callUp() *waiter {
	if p.called.Load() {
		return nil
	}
	return p.release()
}

// release is callUp whoever is on the way.
func (p *Pool) release() *waiter {
	w := p.reserve.head
	if w != nil {
		p.reserve.remove(w)
		w.place, w.called = nowhere, true
		p.called.Store(true)
	}
	return w
}

// relay calls up the next submitter if the last one finds the queue run low: it
// may not submit again.
func (p *Pool) relay() {
	if p.state.Load()&reserves == 0 || p.queued() > int(p.half.Load()) {
		return
	}
	p.mu.Lock()
	w := p.callUp()
	p.publish(0)
	p.mu.Unlock()
	wakeAll(w)
}

// recall returns all submitters in reserve, to be woken. The caller holds the lock.
func (p *Pool) recall() (woken *waiter) {
	last := &woken
	for w := p.release(); w != nil; w = p.release() {
		*last, last = w, &w.prev
	}
	return woken
}

// wakeAll tells submitters that their wait is over.
func wakeAll(w *waiter) {
	for w != nil {
		next := w.prev
		w.prev = nil
		w.ready <- struct{}{}
		w = next
	}
}
