package gate

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/laws"
	"github.com/spillway-go/spillway/limit"
)

// limits holds how many slots may be in use: the limit of the law, within bounds. A law that
// changes its limit sees each start and each end, and its limit is read afterwards. The gate's owner sets the bounds. Nothing
// else has an influence.
type limits struct {
	law    limit.Law // nil: a law that never changes its limit, which need not see starts and ends
	since  uint64    // starts before the current law
	said   int       // the law's own limit
	bounds *Bounds   // noBounds until there are some
	now    int
	rule   Rule // why now has its value
}

// Bounds overrule a law.
type Bounds struct {
	Low, High int // bounds of the limit; zero: none; High wins over Low
	// Leased is the lease on a shared budget, in slots; zero: no lease. No work is admitted over
	// the lease for MaxRefused. While LeaseRules holds, the reason of refusals is Budget.
	Leased  int
	Share   float64         // part of the limit, applied after Leased while a service starts; zero: all of it
	Cap     int             // upper bound, applied after Share; zero: none
	Pressed spillway.Reason // reason of refusals while CapRules holds
}

var noBounds Bounds

// Rule names what determines a limit: the law or a bound.
type Rule uint8

const (
	LawRules Rule = iota
	LowRules
	HighRules
	LeaseRules
	SlowStartRules
	CapRules
)

// Within returns the limit n of a law within the bounds, and what determines the result.
func (b *Bounds) Within(n int) (int, Rule) {
	rule, low := LawRules, max(b.Low, 1) // a law may return less than 1
	if n < low {
		n, rule = low, LowRules
	}
	if b.High > 0 && n > b.High {
		n, rule = b.High, HighRules
	}
	if b.Leased > 0 && n > b.Leased {
		n, rule = b.Leased, LeaseRules
	}
	if part := max(1, int(b.Share*float64(n))); b.Share > 0 && part < n {
		n, rule = part, SlowStartRules
	}
	if b.Cap > 0 && n > b.Cap {
		n, rule = b.Cap, CapRules
	}
	return n, rule
}

// SetBounds sets the bounds that overrule the law from now on.
func (g *Gate) SetBounds(b Bounds) {
	l := &g.limits
	if l.bounds == &noBounds && b != noBounds {
		l.bounds = new(Bounds)
	}
	if *l.bounds != b {
		*l.bounds = b
	}
	if l.law != nil {
		l.said = l.law.Limit()
	}
	l.say(l.said)
}

// SetLaw replaces the law. The new law sees the starts and ends of work that starts from now on.
func (g *Gate) SetLaw(law limit.Law) {
	g.limits.law, g.limits.since = law, g.seq
	g.limits.say(law.Limit())
	if laws.Constant(law) {
		g.limits.law = nil
	}
	if _, ok := law.(estimator); ok {
		g.dry = nil // a dry run asks the law
	}
}

// say sets the law's own limit, which is read again after each start and each end that the law sees.
func (l *limits) say(n int) {
	l.said = n
	l.now, l.rule = l.bounds.Within(n)
}

// LawSays sets the limit of a law that the owner of the gate asks, because the law calls other code.
func (g *Gate) LawSays(n int) { g.limits.say(n) }

// sees reports whether there is a law that learns, and has seen the start of w.
func (l *limits) sees(w *Grant) bool { return l.law != nil && w.Seq > l.since }

// unknown tells the law that work has ended with an unknown outcome. To the law the work started at start.
func (g *Gate) unknown(start, now time.Duration, w *Grant) {
	if l := &g.limits; l.sees(w) {
		l.law.Observe(limit.Sample{Seq: w.Seq - l.since, Start: start, End: now, Outcome: limit.Unknown, Class: w.Kind}, g.load())
		l.say(l.law.Limit())
	}
}

// backendFull reports whether the law knows that more work at once would only wait in the backend.
func (l *limits) backendFull(now time.Duration) bool {
	law, ok := l.law.(interface{ BackendFull(time.Duration) bool })
	return ok && law.BackendFull(now)
}

// Limit is how many slots may be in use now.
func (g *Gate) Limit() int { return g.limits.now }

// Rule returns what determines the limit.
func (g *Gate) Rule() Rule { return g.limits.rule }

// blame returns the reason of a refusal for lack of capacity: the bound that holds the limit below
// the law's, or else the given reason.
func (g *Gate) blame(reason spillway.Reason) spillway.Reason {
	l := &g.limits
	switch {
	case l.rule == CapRules:
		return l.bounds.Pressed
	case l.rule == LeaseRules:
		return spillway.ReasonBudget
	}
	return reason
}

// leased reports whether cost more slots are within the lease.
func (l *limits) leased(inFlight, cost int) bool {
	return l.bounds.Leased == 0 || cost <= l.bounds.Leased-inFlight
}
