package limiter

import (
	"time"

	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/limit"
)

// overruling is what overrules the law: a lowest and a highest limit that the operator
// set, a lease, a ramp for a cold start, and the estimate of a dry run, which fades while
// the law of the enforcement finds out more. Signals are in press.
type overruling struct {
	low, high int    // zero: no bound
	leased    int    // the same, of a lease
	lessor    string // and its cause

	rampFor time.Duration // zero: none, or over
	rampAt  time.Duration // when it began
	began   bool
	ramp    float64 // the share of it that has passed

	inherited float64 // the limit of the law before; zero: none, or faded
	floor     int     // what is left of it
	fades     time.Duration
}

// handover is how long the limit of an estimate applies, for the first half in full. The
// adaptive law finds its own in about a second.
const handover = 2 * time.Second

// leastPart is the part of a limit that a slow start begins with: one slot.
const leastPart = 1e-9

// lawFor is the default law. A dry run enforces nothing, so experiments would
// teach nothing: there the passive estimator stands in.
func lawFor(m Mode) limit.Law {
	if m == DryRun {
		return limit.NewPassive()
	}
	return limit.NewAdaptive()
}

// bounds are what overrules the law now.
func (o *overruling) bounds(p *press) gate.Bounds {
	b := gate.Bounds{Low: max(o.low, o.floor), High: o.high, Leased: o.leased, Cap: p.Cap, Pressed: p.reason}
	if o.rampFor > 0 {
		b.Part = max(o.ramp, leastPart)
	}
	return b
}

// bound lets what overrules the law overrule it. The caller holds the lock.
func (l *Limiter) bound() { l.gate.SetBounds(l.over.bounds(&l.press)) }

// overruledBy is what overrules the law now; empty: nothing does. The caller holds the
// lock.
func (l *Limiter) overruledBy() string {
	switch l.gate.Rule() {
	case gate.LowRules:
		if l.over.floor > l.over.low {
			return "estimate of the dry run, which fades"
		}
		return "lower bound"
	case gate.HighRules:
		return "upper bound"
	case gate.LeaseRules:
		return "lease: " + l.over.lessor
	case gate.PartRules:
		return "slow start"
	case gate.CapRules:
		return "pressed down by " + l.press.By
	}
	return ""
}

// replaceLaw replaces a law of the limiter's choice by the one for the new mode.
func (l *Limiter) replaceLaw(now time.Duration, from, to Mode) {
	if !l.ownLaw || (from == DryRun) == (to == DryRun) {
		return
	}
	o, estimate := &l.over, l.law.Limit()
	l.law = lawFor(to)
	o.inherited, o.floor = 0, 0
	if from == DryRun {
		o.inherited, o.floor, o.fades = float64(estimate), estimate, now+handover
	}
	l.gate.SetLaw(l.law)
	l.bound()
}

// moving reports whether time alone changes the limit.
func (o *overruling) moving() bool { return o.rampFor > 0 || o.inherited > 0 }

// tick changes what time changes and reports whether that may allow more. The caller
// holds the lock.
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
		left := 2 * (o.fades - now).Seconds() / handover.Seconds() // all of it for the first half
		if o.floor = int(o.inherited * min(left, 1)); o.floor <= 0 {
			o.inherited, o.floor = 0, 0
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
