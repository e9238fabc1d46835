package limiter

import (
	"time"

	"github.com/spillway-go/spillway/limit"
)

// Permit is the right to run one piece of work. A Permit belongs to the caller that
// acquired it and may be copied. To end a Permit a second time does nothing, also
// through a copy or long after its slot was reused. The zero Permit is valid and ends
// nothing.
type Permit struct {
	l   *Limiter
	s   *slot
	gen uint64
}

func (l *Limiter) permit(s *slot) Permit { return Permit{l, s, s.generation.Load()} }

// Done ends the work and reports its outcome to the limiter. A nil error gives a
// latency sample; a deadline or a cancellation gives a censored sample; an error that
// matches spillway.ErrRejected is a sign of overload in a dependency; any other error
// gives no sample.
func (p Permit) Done(err error) { p.end(limit.OutcomeOf(err)) }

// Release ends the work without a sample. After Done, Release does nothing, so that
// Release can be deferred. The law learns nothing if permits are only released: an
// adaptive limit keeps its initial value, and Stats().State says so.
func (p Permit) Release() { p.end(limit.Unknown) }

// Shrink gives back some of the slots that the work holds, as when the largest part of the
// work is done. The work runs on with the rest: it keeps at least one slot until it ends.
// If the work is Long, holds no slots or has ended, Shrink does nothing.
func (p Permit) Shrink(slots int) {
	p.change(func(_ time.Duration, s *slot) {
		if slots = min(slots, s.work.Cost-1); slots > 0 && !s.work.Long && !s.work.Aside() {
			p.l.gate.Shrink(s.work.Grant, slots)
			s.work.Cost -= slots // read under the lock only
		}
	})
}

// Long marks running work as long by nature, as Request.Long does from the start, such
// as a request that turns out to be a stream. The work gives its slots back and
// continues, gives no sample and enters no prediction, and Drain waits for the work. If
// the work is already long or has ended, Long does nothing.
func (p Permit) Long() {
	p.change(func(now time.Duration, s *slot) {
		if !s.work.Long {
			p.l.gate.LengthenWork(now, &s.work)
			s.site, s.reported = nil, false
		}
	})
}

// change runs f under both locks, unless the work has ended, and starts waiters.
func (p Permit) change(f func(now time.Duration, s *slot)) {
	if p.s == nil {
		return
	}
	l, s := p.l, p.s
	now := l.lock(l.now())
	defer l.unlock()
	s.mu.Lock()
	runs := s.generation.Load() == p.gen
	if runs {
		l.tick(now)
		f(now, s)
	}
	s.mu.Unlock() // if the work ends from here on, the lock holder settles the end later
	if runs {
		l.grant(now)
	}
}

func (p Permit) end(o limit.Outcome) {
	if p.s == nil || p.s.generation.Load() != p.gen {
		return // ended before, perhaps through a copy
	}
	l, s := p.l, p.s
	now := l.realNow()
	if now < 0 {
		now = l.otherClock()
	}
	s.mu.Lock()
	if s.generation.Load() != p.gen {
		s.mu.Unlock()
		return
	}
	s.generation.Store(p.gen + 1)
	if s.pauses > 0 {
		s.away += max(now-s.pausedAt, 0)
		s.pauses, s.given = 0, false
	}
	var e End
	if l.observer.Ended != nil {
		e = End{s.work.Priority, l.gate.TallyOf(&s.work.Grant), s.work.Long, o, max(now-s.work.Start, 0)}
	}
	s.mu.Unlock()
	var changes []limit.Decision
	switch {
	case l.observer.Ended != nil:
		l.endObserved(now, s, o, e)
	case l.mu.TryLock():
		l.catchUp()
		now = max(l.last, now)
		l.last = now
		l.settle(now, s, o)
		changes = l.release()
	default:
		changes = l.handOver(now, s, o)
	}
	if changes != nil {
		l.reportChanges(changes)
	}
	l.pollIfDue(now)
	if l.careful != nil {
		l.careful.raise()
	}
}
