package limiter

import (
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/limit"
)

// slot is one running piece of work. Slots are reused; gen distinguishes the successive
// uses, and the goroutine that increments gen has ended the work.
type slot struct {
	gen            atomic.Uint64
	grant          gate.Grant
	long           atomic.Bool   // copy of grant.Long for an end that races Permit.Long
	waited         time.Duration // in the queue
	end            time.Duration // when the work ended, if handed to the lock holder
	outcome        limit.Outcome
	nextEnded      *slot     // the end handed over before, or after once the list is reversed
	site           *callSite // where the permit was acquired; nil without leak detection
	reported       bool
	previous, next *slot
}

// slots is the list of running slots, oldest first, and the list of free slots. Long work
// is in neither list: its age means nothing.
type slots struct {
	oldest, youngest *slot
	free             *slot
	nFree            int
}

// begin takes a free slot, or allocates one.
func (r *slots) begin(long bool) (s *slot, isNew bool) {
	s = r.free
	if isNew = s == nil; isNew {
		s = &slot{}
	} else {
		r.free = s.next
		r.nFree--
	}
	if long {
		return s, isNew
	}
	s.previous, s.next = r.youngest, nil
	if r.youngest == nil {
		r.oldest = s
	} else {
		r.youngest.next = s
	}
	r.youngest = s
	return s, isNew
}

// end frees the slot of work that has ended.
func (r *slots) end(s *slot) {
	if !s.grant.Long {
		r.unlink(s)
	}
	s.site, s.reported = nil, false
	s.previous, s.next = nil, r.free
	r.free = s
	r.nFree++
}

func (r *slots) unlink(s *slot) {
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
}

// start assigns a slot to the gate's latest admission. The caller holds the lock.
func (l *Limiter) start(now time.Duration, a *gate.Arrival, waited time.Duration) *slot {
	s, isNew := l.running.begin(a.Traits&gate.Long != 0)
	if isNew {
		l.grew = now
	}
	s.grant = l.gate.Started()
	s.grant.Priority = a.Priority // the gate knows named priorities only
	if s.long.Load() != s.grant.Long {
		s.long.Store(s.grant.Long)
	}
	s.waited = waited
	return s
}

// settle ends work and starts waiters. The caller holds the lock.
func (l *Limiter) settle(now time.Duration, s *slot, o limit.Outcome) {
	l.tick(now)
	l.gate.End(now, s.grant, o)
	l.running.end(s)
	l.grant(now)
}

// An idle limiter keeps at most spareSlots free slots and spareWaiters free waiters, once
// it has needed no more for spareFor.
const (
	spareFor     = time.Second
	spareSlots   = 8
	spareWaiters = 2
)

// trim frees slots and waiters left from a burst. The caller holds the lock.
func (l *Limiter) trim() {
	if l.last-l.grew >= spareFor && l.gate.Idle() {
		l.trimSpare()
	}
}

func (l *Limiter) trimSpare() {
	if r := &l.running; r.nFree > spareSlots {
		last := r.free
		for range spareSlots - 1 {
			last = last.next
		}
		last.next, r.nFree = nil, spareSlots
	}
	if ws := &l.waiters; ws.n > spareWaiters {
		last := ws.free
		for range spareWaiters - 1 {
			last = last.next
		}
		last.next, ws.n = nil, spareWaiters
	}
}
