package limiter

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// Observer receives each decision once, when the limiter makes it. The functions are
// called without the limiter's lock, on a goroutine that uses the limiter: for admissions
// and rejections on the caller's own. Calls may overtake one another. Calls delay the
// caller: hand slow work to another goroutine. A panic propagates to the caller and
// costs no slot. A nil function is not called. For counts and histograms Stats is
// cheaper. Fields may be added.
type Observer struct {
	// Admitted is called when work starts, with the time that the work waited.
	Admitted func(p spillway.Priority, waited time.Duration)
	// Rejected is called when work is refused. The rejection is shared: you may keep
	// it, but do not change it.
	Rejected func(p spillway.Priority, r *spillway.Rejection)
	// WouldReject is called when enforcement would have refused work that a dry run has
	// admitted; Admitted follows. The rejection is shared.
	WouldReject func(p spillway.Priority, r *spillway.Rejection)
	// Ended is called when admitted work has ended, on the goroutine that called Done or
	// Release, once the slot of the work is free again.
	Ended func(End)
	// LimitChanged is called when Limit has changed, with the new limit and the reason.
	LimitChanged func(limit.Decision)
}

// nobody is the observer of a limiter without one.
var nobody Observer

// End describes how one piece of work ended. Fields may be added.
type End struct {
	Priority spillway.Priority
	Kind     string // as in Stats.ByKind
	Long     bool
	Outcome  limit.Outcome // from the error passed to Done; limit.Unknown: only released
	Took     time.Duration // from the admission to the end
}

// endObserved ends work, and reports the end and the changes that it caused. The end is reported also if a user-defined
// law ends the goroutine.
func (l *Limiter) endObserved(now time.Duration, s *slot, o limit.Outcome, e End) {
	var changes []limit.Decision
	defer func() {
		defer func() { l.reportChanges(changes) }()
		l.observer.Ended(e)
	}()
	changes = l.handOver(now, s, o)
}

// reportChanges reports all changes to the observer, also if the observer panics.
func (l *Limiter) reportChanges(changes []limit.Decision) {
	if len(changes) > 0 {
		defer l.reportChanges(changes[1:])
		l.observer.LimitChanged(changes[0])
	}
}

// Observers returns an observer that calls all observers of list, in order. Nil members are
// skipped; the result is nil if there are no others. If an observer panics, the remaining
// observers are still called, and then the panic propagates.
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
