package workerpool

import (
	"context"
	"time"

	"github.com/spillway-go/spillway"
)

// submitter is a caller that waits for room. Its job waits with it, so that a
// worker can move the job into the queue without waking the caller first.
type submitter struct {
	entry      entry
	ready      chan struct{}
	dropped    bool
	next, prev *submitter
	queued     bool
}

// await blocks until s was accepted or dropped, ctx ends, or MaxWait has passed.
func (p *Pool) await(ctx context.Context, s *submitter) error {
	var timeout <-chan time.Time
	if p.cfg.MaxWait > 0 {
		timer := time.NewTimer(p.cfg.MaxWait)
		defer timer.Stop()
		timeout = timer.C
	}
	expired := false
	select {
	case <-s.ready:
	case <-ctx.Done():
	case <-timeout:
		expired = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	waited := now - s.entry.at
	switch {
	case s.dropped:
		return p.refusals.Waited(p.closed, 0, waited)
	case !s.queued: // accepted; its own context may still cancel it before it starts
		return nil
	case expired && ctx.Err() == nil:
		p.blocked.remove(s)
		p.counts.rejectedBy[spillway.WaitTooLong]++
		p.settle()
		return p.refusals.Waited(spillway.WaitTooLong, p.retryAfter(now), waited)
	}
	p.blocked.remove(s)
	p.counts.cancelled++
	p.settle()
	return ctx.Err()
}

// submitters is a queue of blocked callers in which anyone can leave.
type submitters struct {
	head, tail *submitter
	n          int
}

func (l *submitters) push(s *submitter) {
	s.prev, s.queued = l.tail, true
	if l.tail == nil {
		l.head = s
	} else {
		l.tail.next = s
	}
	l.tail = s
	l.n++
}

func (l *submitters) remove(s *submitter) {
	if s.prev == nil {
		l.head = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		l.tail = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.next, s.prev, s.queued = nil, nil, false
	l.n--
}
