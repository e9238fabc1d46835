package limiter

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/refusal"
	"github.com/spillway-go/spillway/limit"
)

// Observer is told of decisions as they are made, once each, without the limiter's
// lock, and on a goroutine that uses the limiter: of admissions and rejections on
// the caller's own. Calls may overtake one another. They delay the caller: hand
// anything slow on. A panic goes to the caller and costs no slot. A nil function is
// not called. For counts and histograms Stats is cheaper. Fields may be added.
type Observer struct {
	// Admitted says that work starts, after a wait.
	Admitted func(p spillway.Priority, waited time.Duration)
	// Rejected says that work was refused. The rejection is shared: keep it,
	// and do not change it.
	Rejected func(p spillway.Priority, r *spillway.Rejection)
	// WouldReject says that a dry run has admitted work that would have been refused,
	// and how: mostly the caller's own, just before Admitted, sometimes work of another
	// that would have waited until now for nothing. The rejection is shared.
	WouldReject func(p spillway.Priority, r *spillway.Rejection)
	// Ended says how admitted work ended, on the goroutine that called Done or
	// Release, once its slot is free again.
	Ended func(End)
	// LimitChanged says what Limit now returns, and why.
	LimitChanged func(limit.Decision)
}

// End is how one piece of work went. Fields may be added.
type End struct {
	Priority spillway.Priority
	Cost     int
	Long     bool
	Outcome  limit.Outcome // what Done was given; limit.Unknown: only released
	Waited   time.Duration // in the queue
	Took     time.Duration // from its admission to its end
}

// endOf describes work that ended at now, before its slot is used again.
func endOf(s *slot, now time.Duration, o limit.Outcome) End {
	return End{s.grant.Priority, s.grant.Cost, s.long.Load(), o, s.waited, max(now-s.grant.Start, 0)}
}

// admitted hands a permit out and tells the observer; a panic of it, or of the law, does not
// cost the slot.
func (l *Limiter) admitted(p Permit, priority spillway.Priority, waited time.Duration, changes []limit.Decision) (Permit, error) {
	returned := false
	defer func() {
		if !returned {
			p.Release()
		}
	}()
	l.tell(changes)
	l.raise()
	if l.leakAfter > 0 && !p.s.grant.Long {
		l.mark(p)
	}
	if l.observer.Admitted != nil {
		l.observer.Admitted(priority, waited)
	}
	returned = true
	return p, nil
}

// wouldReject is a refusal that a dry run does not make.
type wouldReject struct {
	priority spillway.Priority
	*spillway.Rejection
}

// admittedAnyway is admitted for a permit of a dry run, of which the observer may have to
// be told more. It unlocks.
func (l *Limiter) admittedAnyway(p Permit, priority spillway.Priority, d gate.Decision) (Permit, error) {
	would := l.wouldReject(priority, d)
	changes := l.release()
	returned := false
	defer func() {
		if !returned {
			p.Release()
		}
	}()
	l.tellWould(would)
	returned = true
	return l.admitted(p, priority, 0, changes)
}

// wouldReject collects what a dry run, at an arrival of that priority, would have
// refused. The caller holds the lock.
func (l *Limiter) wouldReject(p spillway.Priority, d gate.Decision) (all []wouldReject) {
	for _, late := range l.gate.Late() {
		all = append(all, wouldReject{late.Priority, l.refusal.From(refusal.Of(late.Reason), l.gate.WouldRetryAfter(late.Priority))})
	}
	if d.Reason != 0 {
		all = append(all, wouldReject{p, l.refusal.From(l.rowOf(d), l.gate.WouldRetryAfter(p))})
	}
	return all
}

// tellWould tells the observer of all of them, also when it panics at one.
func (l *Limiter) tellWould(would []wouldReject) {
	if len(would) > 0 {
		defer l.tellWould(would[1:])
		l.observer.WouldReject(would[0].priority, would[0].Rejection)
	}
}

// rejected tells the observer.
func (l *Limiter) rejected(priority spillway.Priority, r *spillway.Rejection) (Permit, error) {
	if l.observer.Rejected != nil {
		l.observer.Rejected(priority, r)
	}
	return Permit{}, r
}

// tellEnd tells the observer of an end and the changes that it made.
func (l *Limiter) tellEnd(e End, changes []limit.Decision) {
	defer l.tell(changes)
	l.observer.Ended(e)
}

// tell tells the observer of all changes, also when it panics at one.
func (l *Limiter) tell(changes []limit.Decision) {
	if len(changes) > 0 {
		defer l.tell(changes[1:])
		l.observer.LimitChanged(changes[0])
	}
}

// Observers returns an observer that tells all of list, in that order. Nil members are
// skipped; it is nil if there are no others. When one panics, the rest is told all the
// same, and then the panic goes on.
func Observers(list ...*Observer) (all *Observer) {
	for _, o := range list {
		switch {
		case o == nil:
		case all == nil:
			first := *o
			all = &first
		default:
			all = &Observer{
				Admitted:     both(all.Admitted, o.Admitted),
				Rejected:     both(all.Rejected, o.Rejected),
				WouldReject:  both(all.WouldReject, o.WouldReject),
				Ended:        one(all.Ended, o.Ended),
				LimitChanged: one(all.LimitChanged, o.LimitChanged),
			}
		}
	}
	return all
}

// both calls f and then g, also when f panics.
func both[A, B any](f, g func(A, B)) func(A, B) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(a A, b B) {
		defer g(a, b)
		f(a, b)
	}
}

// one is both for functions of one argument.
func one[A any](f, g func(A)) func(A) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(a A) {
		defer g(a)
		f(a)
	}
}
