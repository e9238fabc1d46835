package gate

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// limits is how many slots may be in use: what the law says, within bounds. The law is
// told of each start and each end, and asked after it; the bounds come from the gate's
// owner. Nothing else is asked.
type limits struct {
	law     limit.Law       // nil in a shadow, whose limits are those of its gate
	forgets limit.Forgetter // the same, or nil
	since   uint64          // the starts before this law
	said    int             // the law's own limit
	bounds  Bounds
	now     int
	rule    Rule // why it is that
}

// Bounds overrule a law.
type Bounds struct {
	Low, High int             // of the limit; zero: none; High holds where they contradict each other
	Leased    int             // a share that others grant; zero: none; no more runs for MaxRefused, and refusals while it rules are for Budget
	Part      float64         // of what those leave, while a service starts; zero: all of it
	Cap       int             // of that; zero: none
	Pressed   spillway.Reason // of refusals while there is a cap
}

// Rule is what makes a limit what it is.
type Rule uint8

const (
	LawRules Rule = iota
	LowRules
	HighRules
	LeaseRules
	PartRules
	CapRules
)

// Within is a law's limit within the bounds, and what rules.
func (b *Bounds) Within(n int) (int, Rule) {
	rule, low := LawRules, max(b.Low, 1) // whatever the law says
	if n < low {
		n, rule = low, LowRules
	}
	if b.High > 0 && n > b.High {
		n, rule = b.High, HighRules
	}
	if b.Leased > 0 && n > b.Leased {
		n, rule = b.Leased, LeaseRules
	}
	if part := max(1, int(b.Part*float64(n))); b.Part > 0 && part < n {
		n, rule = part, PartRules
	}
	if b.Cap > 0 && n > b.Cap {
		n, rule = b.Cap, CapRules
	}
	return n, rule
}

// SetBounds overrules the law from now on.
func (g *Gate) SetBounds(b Bounds) {
	g.limits.bounds = b
	g.limits.ask()
	g.limits.set()
}

// SetLaw replaces the law. The new one is told of work that starts from now on, and of the
// end of that.
func (g *Gate) SetLaw(law limit.Law) {
	g.limits.law, g.limits.since = law, g.seq
	g.limits.forgets, _ = law.(limit.Forgetter)
	g.limits.said = law.Limit()
	g.limits.set()
}

func (l *limits) set() { l.now, l.rule = l.bounds.Within(l.said) }

// ask takes the law's limit, which may have changed.
func (l *limits) ask() {
	if l.law == nil {
		return
	}
	if n := l.law.Limit(); n != l.said {
		l.said = n
		l.set()
	}
}

// started tells the law of a start.
func (l *limits) started(at time.Duration, load limit.Load) {
	if l.law != nil {
		l.law.Admit(at, load)
		l.ask()
	}
}

// ended tells the law of an end, if the law was told of the start.
func (l *limits) ended(s limit.Sample, load limit.Load) {
	if l.law != nil && s.Seq > l.since {
		s.Seq -= l.since
		l.law.Observe(s, load)
		l.ask()
	}
}

// Limit is how many slots may be in use now.
func (g *Gate) Limit() int { return g.limits.now }

// Rule is what makes the limit what it is.
func (g *Gate) Rule() Rule { return g.limits.rule }

// blame is the reason of a refusal for lack of capacity: what holds the limit below the
// law's, or reason.
func (g *Gate) blame(reason spillway.Reason) spillway.Reason {
	l := &g.limits
	switch {
	case l.rule == CapRules:
		return l.bounds.Pressed
	case l.rule == LeaseRules:
		return spillway.Budget
	}
	return reason
}

// leased reports whether so many slots more are within the share that others grant.
func (l *limits) leased(inFlight, cost int) bool {
	return l.bounds.Leased == 0 || cost <= l.bounds.Leased-inFlight
}

// follow makes the limit that of another gate, which tells the law.
func (g *Gate) follow(of *Gate) {
	g.limits = of.limits
	g.limits.law, g.limits.forgets = nil, nil
}
