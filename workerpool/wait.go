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
	since      time.Duration
	ready      chan struct{}
	timer      *time.Timer
	refused    spillway.Reason
	next, prev *waiter
	queued     bool
}

// waiters is a queue in which anyone can leave.
type waiters struct {
	head, tail *waiter
	n          int
}

func (l *waiters) push(w *waiter) {
	w.prev, w.next, w.queued = l.tail, nil, true
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
	w.next, w.prev, w.queued = nil, nil, false
	l.n--
}

// enqueue makes a submitter wait. The caller holds the lock.
func (p *Pool) enqueue(e entry) *waiter {
	w := p.spareWs
	if w == nil {
		w = &waiter{ready: make(chan struct{}, 1)}
	} else {
		p.spareWs, w.next = w.next, nil
	}
	w.entry, w.refused, w.since = e, 0, -1
	if e.meta.timed() {
		w.since = e.meta.at()
	} else if p.cfg.MaxWait > 0 {
		w.since = p.now()
	}
	p.waiting[e.meta.level()].push(w)
	p.nWaiting++
	return w
}

// unqueue ends a wait. The caller holds the lock.
func (p *Pool) unqueue(w *waiter) {
	p.waiting[w.entry.meta.level()].remove(w)
	p.nWaiting--
}

// free keeps a waiter that nobody will wake any more. The caller holds the lock.
func (p *Pool) free(w *waiter) {
	w.entry = entry{}
	w.next, p.spareWs = p.spareWs, w
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
	p.mu.Lock()
	if w.queued {
		defer p.mu.Unlock()
		p.unqueue(w)
		p.publish(0)
		p.settle()
		defer p.free(w)
		if expired && ctx.Err() == nil {
			return p.turnAway(w, spillway.WaitTooLong)
		}
		p.turned++
		return ctx.Err()
	}
	if !told { // it is about to be
		p.mu.Unlock()
		<-w.ready
		p.mu.Lock()
	}
	defer p.mu.Unlock()
	defer p.free(w)
	if w.refused != 0 {
		return p.turnAway(w, w.refused)
	}
	return nil // its own context may still cancel the job before it starts
}

// turnAway makes a refusal for one who waited. The caller holds the lock.
func (p *Pool) turnAway(w *waiter, reason spillway.Reason) error {
	n := p.tally.shards[0].refused[reason].Add(1)
	var advice time.Duration
	if reason == spillway.WaitTooLong {
		advice = time.Duration(p.cost.Load() * int64(p.ahead(levels-1)+p.nWaiting+1))
	}
	rej := *refusal.Of(reason).Near(advice, n)
	if w.since >= 0 {
		rej.Waited = p.now() - w.since
	}
	return &rej
}

// admit moves the jobs of waiting submitters into the queue while there is room,
// and returns those to be woken once the lock is released. The caller holds it.
func (p *Pool) admit() (woken *waiter) {
	if p.nWaiting == 0 {
		return nil
	}
	last := &woken
	for lv := range p.waiting {
		for w := p.waiting[lv].head; w != nil; w = p.waiting[lv].head {
			if !p.push(w.entry, max(p.limit-p.active, 0)) {
				return woken
			}
			p.unqueue(w)
			*last, last = w, &w.prev
		}
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
