package limiter

import (
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/limit"
)

// slot is one running piece of work. Slots are reused; the generation in state distinguishes the
// successive uses, and the goroutine that increments the generation has ended the work.
type slot struct {
	state     state
	pausedAt  atomic.Int64 // when the current pause began
	away      away
	work      gate.Work
	long      atomic.Bool   // copy of work.Long for an end that races Permit.Long
	waited    time.Duration // in the queue
	end       time.Duration // when the work ended, if handed to the lock holder
	outcome   limit.Outcome
	nextEnded *slot     // the end handed over before, or after once the list is reversed
	site      *callSite // where the permit was acquired; nil without leak detection
	reported  bool
	nextFree  *slot
}

// slots is the list of free slots.
type slots struct {
	free  *slot
	nFree int
}

// begin takes a free slot, or allocates one.
func (r *slots) begin() (s *slot, isNew bool) {
	s = r.free
	if isNew = s == nil; isNew {
		s = &slot{}
		s.work.Owner = s
	} else {
		r.free = s.nextFree
		r.nFree--
	}
	return s, isNew
}

// end frees the slot of work that has ended.
func (r *slots) end(s *slot) {
	s.site, s.reported = nil, false
	s.nextFree = r.free
	r.free = s
	r.nFree++
}

// start assigns a slot to the gate's latest admission. The caller holds the lock.
func (l *Limiter) start(now time.Duration, a *gate.Arrival, waited time.Duration) *slot {
	s, isNew := l.running.begin()
	if isNew {
		l.grew = now
	}
	l.gate.Track(&s.work)
	s.work.Priority = a.Priority // the gate knows named priorities only
	if s.long.Load() != s.work.Long {
		s.long.Store(s.work.Long)
	}
	s.away.begin(s.state.generation())
	s.waited = waited
	return s
}

// settle ends work and starts waiters. The caller holds the lock.
func (l *Limiter) settle(now time.Duration, s *slot, o limit.Outcome) {
	l.tick(now)
	if away := s.away.time(); away != 0 {
		s.work.Away = min(away, now-s.work.Start)
	}
	l.gate.EndWork(now, &s.work, o)
	l.running.end(s)
	l.grant(now)
}

// An idle limiter keeps at most spareSlots free slots and spareWaiters free waiters, once
// it has needed no more for spareFor.
const (
	spareFor     = time.Second
	spareSlots   = 4
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
			last = last.nextFree
		}
		last.nextFree, r.nFree = nil, spareSlots
	}
	if ws := &l.waiters; ws.n > spareWaiters {
		last := ws.free
		for range spareWaiters - 1 {
			last = last.next
		}
		last.next, ws.n = nil, spareWaiters
	}
}
