package limiter

import (
	"time"

	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/laws"
	"github.com/spillway-go/spillway/limit"
)

// history is how the limit has come to be what it is. Most limiters of a family have none: they share noHistory,
// which nobody changes. The limiter's lock guards a history.
type history struct {
	over      overruling
	press     press
	log       laws.Log // last changes of the limit
	overruled string   // what overruled the law at the last change; empty: nothing
}

var noHistory history

// beginHistory is called before the first change of l.history. The caller holds the lock.
func (l *Limiter) beginHistory() {
	if l.history == &noHistory {
		l.history = &history{}
	}
}

// noteRule notes what overrules the law now. The caller holds the lock.
func (l *Limiter) noteRule() {
	if by := l.overruledBy(); by != l.overruled {
		l.beginHistory()
		l.overruled = by
	}
}

// overruling holds everything that overrules the law, except signals, which are in press:
// the operator's lower and upper bound, a lease, the ramp of a slow start, and the estimate
// of a dry run, which fades while the law for enforcement learns.
type overruling struct {
	low, high int // the operator's bounds; zero: no bound
	lease     lease

	rampFor time.Duration // duration of the slow start; zero: none, or over
	rampAt  time.Duration // when the slow start began
	began   bool
	ramp    float64 // the share of rampFor that has passed

	inherited   float64 // limit of the dry run's law; zero: none, or faded
	handoverLow int     // lower bound that is left of inherited
	fades       time.Duration
}

// handover is how long the estimate of a dry run is a lower bound, for the first half in
// full. The adaptive law finds its own limit in about a second.
const handover = 2 * time.Second

// leastShare is the part of the limit with which a slow start begins: one slot.
const leastShare = 1e-9

// lawFor returns the default law of a mode. A dry run enforces nothing, so trials would
// show nothing: a dry run has the passive estimator.
func lawFor(m Mode) limit.Law {
	if m == DryRun {
		return limit.NewPassive()
	}
	return limit.NewAdaptive()
}

// bounds returns what overrules the law now.
func (o *overruling) bounds(p *press) gate.Bounds {
	b := gate.Bounds{Low: max(o.low, o.handoverLow), High: o.high, Cap: p.Cap}
	if p.row != nil {
		b.Pressed = p.row.Reason()
	}
	if o.lease.row != nil {
		b.Leased = max(o.lease.slots, 1)
	}
	if o.rampFor > 0 {
		b.Share = max(o.ramp, leastShare)
	}
	return b
}

// bound passes the current bounds to the gate. The caller holds the lock.
func (l *Limiter) bound() {
	l.gate.SetBounds(l.over.bounds(&l.press))
	l.ruled = l.over.moving() || l.over.lease.row != nil
}

// overruledBy describes what overrules the law now; empty: nothing. The caller holds the
// lock.
func (l *Limiter) overruledBy() string {
	switch l.gate.Rule() {
	case gate.LowRules:
		if l.over.handoverLow > l.over.low {
			return "estimate of the dry run, which fades"
		}
		return "lower bound"
	case gate.HighRules:
		return "upper bound"
	case gate.LeaseRules:
		return "lease: " + l.over.lease.row[0].Cause
	case gate.SlowStartRules:
		return "slow start"
	case gate.CapRules:
		return "pressed down by " + l.press.By
	}
	return ""
}

// replaceLaw replaces a default law by the default law of the new mode.
func (l *Limiter) replaceLaw(now time.Duration, from, to Mode) {
	if !l.ownLaw || (from == DryRun) == (to == DryRun) {
		return
	}
	l.beginHistory()
	o, estimate := &l.over, l.law.Limit()
	l.law = lawFor(to)
	o.inherited, o.handoverLow = 0, 0
	if from == DryRun {
		o.inherited, o.handoverLow, o.fades = float64(estimate), estimate, now+handover
	}
	l.gate.SetLaw(l.law)
	l.bound()
}

// moving reports whether time alone changes the limit.
func (o *overruling) moving() bool { return o.rampFor > 0 || o.inherited > 0 }

// tick advances the slow start and the handover, and reports whether the limit has risen.
// The caller holds the lock.
func (l *Limiter) tick(now time.Duration) bool {
	if !l.over.moving() {
		return false
	}
	before := l.gate.Limit()
	l.over.advance(now)
	l.bound()
	return l.gate.Limit() > before
}

func (o *overruling) advance(now time.Duration) {
	if o.inherited > 0 {
		left := 2 * (o.fades - now).Seconds() / handover.Seconds() // 1 or more in the first half
		if o.handoverLow = int(o.inherited * min(left, 1)); o.handoverLow <= 0 {
			o.inherited, o.handoverLow = 0, 0
		}
	}
	if o.rampFor > 0 {
		if !o.began {
			o.began, o.rampAt = true, now
		}
		if o.ramp = float64(now-o.rampAt) / float64(o.rampFor); o.ramp >= 1 {
			o.rampFor = 0
		}
	}
}
