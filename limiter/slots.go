package limiter

import (
	"sync"
	"time"

	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/limit"
)

// slot is one running piece of work. Slots are reused; the generation distinguishes the successive
// uses, and the goroutine that increments the generation has ended the work.
type slot struct {
	mu         sync.Mutex    // guards the fields up to away; locked after Limiter.mu
	generation uint64        // how many uses have ended
	pauses     int           // pauses of the work that have not ended
	given      bool          // the slots of the paused work were given to others
	pausedAt   time.Duration // when the current pause began
	away       time.Duration // time of all past pauses of the work
	work       gate.Work
	ended      time.Duration // when the work ended, if handed to the lock holder
	outcome    limit.Outcome
	site       *callSite // where the permit was acquired; nil without leak detection
	reported   bool
	next       *slot // next in slots.free, or in Limiter.ended
}

// slots is the list of free slots.
type slots struct {
	free  *slot
	nFree int
}

// end frees the slot of work that has ended.
func (r *slots) end(s *slot) {
	s.site, s.reported = nil, false
	s.next = r.free
	r.free = s
	r.nFree++
}

// grow allocates a free slot.
func (l *Limiter) grow(now time.Duration) *slot {
	s := &slot{}
	s.work.Owner = s
	l.running.end(s)
	l.grew = now
	return s
}

// start assigns a slot to the gate's latest admission. The caller holds the lock.
func (l *Limiter) start(now time.Duration) *slot {
	s := l.running.free
	if s == nil {
		s = l.grow(now)
	}
	l.gate.Track(&s.work)
	l.begin(s)
	return s
}

// begin takes the first free slot s for work that the gate has started.
func (l *Limiter) begin(s *slot) {
	l.running.free = s.next
	l.running.nFree--
	s.next, s.away = nil, 0
}

// settle ends work and starts waiters. The caller holds the lock.
func (l *Limiter) settle(now time.Duration, s *slot, o limit.Outcome) {
	if l.ruled {
		l.tick(now)
	}
	if s.away != 0 {
		s.work.Away = min(s.away, now-s.work.Start)
	}
	l.gate.EndWork(now, &s.work, o)
	l.running.end(s)
	if g := l.gate; g.Queued() > 0 || l.memos.live.Load() || l.limit.Load() != int64(g.Limit()) || l.running.nFree > spareSlots || l.waiters.n > spareWaiters || l.idle != nil {
		l.grant(now) // has something to do
	}
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
	if l.last-l.grew < spareFor || !l.gate.Idle() {
		return
	}
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
