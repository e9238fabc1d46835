package limiter

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/limit"
)

// slot is one running piece of work. Slots are reused; the generation distinguishes the successive
// uses, and the goroutine that increments the generation has ended the work.
type slot struct {
	mu         sync.Mutex    // guards the fields up to away; locked after Limiter.mu
	generation atomic.Uint64 // how many uses have ended; read without the lock too
	pauses     int32         // pauses of the work that have not ended
	given      bool          // the slots of the paused work were given to others
	pausedAt   time.Duration // when the current pause began
	away       time.Duration // time of all past pauses of the work
	work       gate.Work
	ended      time.Duration // when the work ended, if handed to the lock holder
	outcome    limit.Outcome
	reported   bool      // as a leak
	site       *callSite // where the permit was acquired; nil without leak detection
	next       *slot     // next in slots.free, or in Limiter.ended
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
	s.away = 0
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
	if l.gate.Queued() > 0 || l.stale() || l.spare() || l.idle != nil {
		l.grant(now) // has something to do
	}
}

// An idle limiter with more than spareSlots free slots or spareWaiters free waiters frees them all, once it
// has needed no more for spareFor.
const (
	spareFor     = time.Second
	spareSlots   = 4
	spareWaiters = 2
)

// trim frees slots and waiters left from a burst. The caller holds the lock.
func (l *Limiter) trim() {
	if l.spare() && l.last-l.grew >= spareFor && l.gate.Idle() {
		l.running, l.waiters = slots{}, waiters{}
	}
}

// spare reports whether there are more free slots or waiters than an idle limiter keeps.
func (l *Limiter) spare() bool { return l.running.nFree > spareSlots || l.waiters.n > spareWaiters }
