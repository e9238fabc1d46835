package limiter

import (
	"time"

	"github.com/spillway-go/spillway"
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
	return End{s.grant.Priority, s.grant.Cost, s.grant.Long, o, s.waited, max(now-s.grant.Start, 0)}
}

// admitted hands a permit out and tells the observer; a panic of it does not cost the slot.
func (l *Limiter) admitted(p Permit, priority spillway.Priority, waited time.Duration, changes []limit.Decision) (Permit, error) {
	returned := false
	defer func() {
		if !returned {
			p.Release()
		}
	}()
	l.tell(changes)
	if l.leakAfter > 0 && !p.s.grant.Long {
		l.mark(p)
	}
	if l.observer.Admitted != nil {
		l.observer.Admitted(priority, waited)
	}
	returned = true
	return p, nil
}

// rejected tells the observer.
func (l *Limiter) rejected(priority spillway.Priority, r *spillway.Rejection) (Permit, error) {
	if l.observer.Rejected != nil {
		l.observer.Rejected(priority, r)
	}
	return Permit{}, r
}

func (l *Limiter) tell(changes []limit.Decision) {
	for _, c := range changes {
		l.observer.LimitChanged(c)
	}
}
