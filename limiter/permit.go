package limiter

import (
	"time"

	"github.com/spillway-go/spillway/limit"
)

// Permit is the right to run one piece of work. It belongs to the caller that
// acquired it and may be copied; ending it twice, also by a copy or long after
// its slot was reused, does nothing. The zero Permit is valid and ends nothing.
type Permit struct {
	l   *Limiter
	s   *slot
	gen uint64
}

func (l *Limiter) permit(s *slot) Permit { return Permit{l, s, s.gen.Load()} }

// Done ends the work and tells the limiter how it went. Nil is a latency
// sample; a deadline or cancellation is a censored one; an error that matches
// spillway.ErrRejected is a sign of overload below; any other error is no
// sample.
func (p Permit) Done(err error) { p.end(limit.OutcomeOf(err)) }

// Release ends the work without a sample. After Done it does nothing, so that
// it can be deferred. Work that is only ever released teaches the law nothing: an
// adaptive limit stays where it started, and State says so.
func (p Permit) Release() { p.end(limit.Unknown) }

// Long makes the work long by nature, as Request.Long does from the start: a request
// that turns out to be a stream. It gives its slots back and runs on, is no sample,
// enters no prediction, and Drain waits for it. On work that is long or has ended it
// does nothing.
func (p Permit) Long() {
	if p.s == nil || p.s.gen.Load() != p.gen {
		return
	}
	l := p.l
	now := l.lock(l.now())
	defer l.unlock()
	// Work that ends from here on is entered later, by the holder of the lock.
	if s := p.s; s.gen.Load() == p.gen && !s.grant.Long {
		l.tick(now)
		l.gate.Lengthen(now, s.grant)
		l.running.unlink(s)
		s.grant.Long, s.site, s.reported = true, nil, false
		s.long.Store(true)
		l.grant(now)
	}
}

func (p Permit) end(o limit.Outcome) {
	if p.s == nil || !p.s.gen.CompareAndSwap(p.gen, p.gen+1) {
		return // ended before, or a copy was faster
	}
	l, now := p.l, p.l.now()
	if l.observer.Ended == nil {
		l.tell(l.enter(now, p.s, o))
	} else {
		end := endOf(p.s, now, o)
		changes := l.enter(now, p.s, o)
		l.tellEnd(end, changes)
	}
	if now >= time.Duration(l.due.Load()) {
		l.poll(now)
	}
	l.raise()
}
