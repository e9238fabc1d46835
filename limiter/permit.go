package limiter

import (
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/limit"
)

// slot is one running piece of work. It is reused; gen tells its users apart, and
// who moves it on has ended the work.
type slot struct {
	gen            atomic.Uint64
	grant          gate.Grant
	end            time.Duration // when it ended, if it was left for others to enter
	outcome        limit.Outcome
	later          *slot     // that was left before, or, once turned round, after
	site           *callSite // where it was acquired, when leaks are looked for
	reported       bool
	previous, next *slot
}

// slots are the running ones, the oldest first, and the free ones.
type slots struct {
	oldest, youngest *slot
	free             *slot
	nFree            int
}

// start gives the latest admission a slot. The caller holds the lock.
func (l *Limiter) start(now, deadline time.Duration, cost int, p spillway.Priority) *slot {
	r := &l.running
	s := r.free
	if s == nil {
		s = &slot{}
		l.busy = now
	} else {
		r.free = s.next
		r.nFree--
	}
	s.grant = gate.Grant{Seq: l.gate.Seq(), Start: now, Deadline: deadline, Cost: cost, Priority: p}
	s.previous, s.next = r.youngest, nil
	if r.youngest == nil {
		r.oldest = s
	} else {
		r.youngest.next = s
	}
	r.youngest = s
	return s
}

// free takes back the slot of work that has ended. The caller holds the lock.
func (l *Limiter) freeSlot(s *slot) {
	r := &l.running
	if s.previous == nil {
		r.oldest = s.next
	} else {
		s.previous.next = s.next
	}
	if s.next == nil {
		r.youngest = s.previous
	} else {
		s.next.previous = s.previous
	}
	s.site, s.reported = nil, false
	s.previous, s.next = nil, r.free
	r.free = s
	r.nFree++
}

// What a limiter keeps for the next work, when it has none and had no more than
// that a moment ago.
const (
	spareFor     = time.Second
	spareSlots   = 8
	spareWaiters = 2
)

// trim gives back what a burst has left. The caller holds the lock.
func (l *Limiter) trim() {
	if l.last-l.busy < spareFor || !l.gate.Idle() {
		return
	}
	if r := &l.running; r.nFree > spareSlots {
		last := r.free
		for range spareSlots - 1 {
			last = last.next
		}
		last.next, r.nFree = nil, spareSlots
	}
	if l.nWaiters > spareWaiters {
		last := l.waiters
		for range spareWaiters - 1 {
			last = last.next
		}
		last.next, l.nWaiters = nil, spareWaiters
	}
}

func (l *Limiter) permit(s *slot) Permit { return Permit{l, s, s.gen.Load()} }

// Permit is the right to run one piece of work. It belongs to the caller that
// acquired it and may be copied; ending it twice, also by a copy or long after
// its slot was reused, does nothing. The zero Permit is valid and ends nothing.
type Permit struct {
	l   *Limiter
	s   *slot
	gen uint64
}

// Done ends the work and tells the limiter how it went. Nil is a latency
// sample; a deadline or cancellation is a censored one; an error that matches
// spillway.ErrRejected is a sign of overload below; any other error is no
// sample.
func (p Permit) Done(err error) { p.end(limit.OutcomeOf(err)) }

// Release ends the work without a sample. After Done it does nothing, so that
// it can be deferred. Work that is only ever released teaches the law nothing: an
// adaptive limit stays where it started, and State says so.
func (p Permit) Release() { p.end(limit.Unknown) }

func (p Permit) end(o limit.Outcome) {
	if p.s == nil || !p.s.gen.CompareAndSwap(p.gen, p.gen+1) {
		return // ended before, or a copy was faster
	}
	l, now := p.l, p.l.now()
	if l.mu.TryLock() {
		now = l.locked(now)
		l.settle(now, p.s, o)
		l.unlock()
	} else {
		l.leave(now, p.s, o)
	}
	if now >= time.Duration(l.due.Load()) {
		l.poll(now)
	}
}

// settle ends work. The caller holds the lock.
func (l *Limiter) settle(now time.Duration, s *slot, o limit.Outcome) {
	l.law.tick(now)
	l.gate.End(now, s.grant, o)
	l.freeSlot(s)
	l.grant(now)
}
