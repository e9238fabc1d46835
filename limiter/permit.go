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

func (l *Limiter) permit(s *slot) Permit { return Permit{l, s, s.gen.Load()} }

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
// If the work is Long or has ended, Shrink does nothing.
func (p Permit) Shrink(slots int) {
	if p.s == nil || p.s.gen.Load() != p.gen {
		return
	}
	l := p.l
	now := l.lock(l.now())
	defer l.unlock()
	s := p.s
	if slots = min(slots, s.grant.Cost-1); slots > 0 && s.gen.Load() == p.gen && !s.grant.Long {
		l.tick(now)
		l.gate.Shrink(s.grant, slots)
		s.grant.Cost -= slots // read under the lock only
		l.grant(now)
	}
}

// Long marks running work as long by nature, as Request.Long does from the start, such
// as a request that turns out to be a stream. The work gives its slots back and
// continues, gives no sample and enters no prediction, and Drain waits for the work. If
// the work is already long or has ended, Long does nothing.
func (p Permit) Long() {
	if p.s == nil || p.s.gen.Load() != p.gen {
		return
	}
	l := p.l
	now := l.lock(l.now())
	defer l.unlock()
	// If the work ends from here on, the lock holder settles the end later.
	if s := p.s; s.gen.Load() == p.gen && !s.grant.Long {
		l.tick(now)
		l.gate.Lengthen(now, s.grant)
		l.running.unlink(s)
		s.grant.Long, s.site, s.reported = true, nil, false
		s.long.Store(true)
		l.grant(now)
	}
}

// Pause says that the work waits for its client: to send a body, to take an answer. Time in a pause
// is no part of the sample. A pause that lasts gives the slots to others while others want them;
// the work then counts as Stats.Paused. Pauses nest, also across goroutines: the work goes on after
// as many calls of Resume. Pause does not block, allocates nothing and reads the clock once. Pause of
// work that is Long or has ended does nothing.
func (p Permit) Pause() {}

// Resume ends a pause. Work that has given its slots away takes them again at once, over the limit
// if all are in use: work that has begun does not wait for a slot, since it may hold a lock that
// others with a slot wait for.
func (p Permit) Resume() {}

func (p Permit) end(o limit.Outcome) {
	if p.s == nil || !p.s.gen.CompareAndSwap(p.gen, p.gen+1) {
		return // ended before, perhaps through a copy
	}
	l, now := p.l, p.l.now()
	if l.observer.Ended == nil {
		l.reportChanges(l.enter(now, p.s, o))
	} else {
		end := endOf(p.s, now, o)
		changes := l.enter(now, p.s, o)
		l.reportEnd(end, changes)
	}
	if now >= time.Duration(l.due.Load()) {
		l.poll(now)
	}
	l.raise()
}
