package limiter

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// governed is the law within the bounds that its operator set: a lowest and a
// highest limit, and a ramp for a cold start. It also lets one law take over
// from another: the later one sees only work that it admitted itself, and what the
// earlier one said last fades while the later one finds out more.
type governed struct {
	limit.Law
	own       bool   // the law is the limiter's choice, not the operator's
	seq       uint64 // admissions so far
	since     uint64 // those before this law
	low, high int    // zero: no bound
	leased    int    // the same, of a lease
	lessor    string // and its cause
	bounded   int    // the limit within them
	now       int    // the same, or the share of it that a slow start allows: asked for far more often than it changes

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

func govern(law limit.Law, m Mode, slowStart time.Duration) *governed {
	g := &governed{Law: law, own: law == nil, rampFor: slowStart}
	if g.own {
		g.Law = lawFor(m)
	}
	g.bound()
	return g
}

// lawFor is the default law. A dry run enforces nothing, so experiments would
// teach nothing: there the passive estimator stands in.
func lawFor(m Mode) limit.Law {
	if m == DryRun {
		return limit.NewPassive()
	}
	return limit.NewAdaptive()
}

// Limit is the law's limit within its bounds.
func (g *governed) Limit() int { return g.now }

// bound computes the limit anew, after anything that may have changed it.
func (g *governed) bound() {
	n := g.Law.Limit()
	n = max(n, g.low, g.floor, 1) // whatever the operator's law says
	if g.high > 0 {
		n = min(n, g.high)
	}
	if g.leased > 0 {
		n = min(n, g.leased)
	}
	g.bounded, g.now = n, n
	if g.rampFor > 0 {
		g.now = max(1, int(g.ramp*float64(n)))
	}
}

// overruledBy is what overrules the law now; empty: nothing does.
func (g *governed) overruledBy() string {
	switch {
	case g.now == g.Law.Limit():
		return ""
	case g.now < g.bounded:
		return "slow start"
	case g.now == g.leased:
		return "lease: " + g.lessor
	case g.now == g.high:
		return "upper bound"
	case g.now == g.floor:
		return "estimate of the dry run, which fades"
	}
	return "lower bound"
}

// Admit counts the work and passes it on.
func (g *governed) Admit(at time.Duration, load limit.Load) {
	g.seq++
	g.Law.Admit(at, load)
	g.bound()
}

// Observe passes on the end of what the law was told of at its start.
func (g *governed) Observe(s limit.Sample, load limit.Load) {
	if s.Seq > g.since {
		s.Seq -= g.since
		g.Law.Observe(s, load)
		g.bound()
	}
}

// setMode replaces a law of the limiter's choice by the one for the new mode.
func (g *governed) setMode(now time.Duration, from, to Mode) {
	if !g.own || (from == DryRun) == (to == DryRun) {
		return
	}
	estimate := g.Law.Limit()
	g.Law, g.since = lawFor(to), g.seq
	g.inherited, g.floor = 0, 0
	if from == DryRun {
		g.inherited, g.floor, g.fades = float64(estimate), estimate, now+handover
	}
	g.bound()
}

// setBounds keeps the limit between low and high.
func (g *governed) setBounds(low, high int) {
	g.low, g.high = low, high
	g.bound()
}

// setLease keeps the limit at so many slots at most; zero lifts that.
func (g *governed) setLease(slots int, cause string) {
	g.leased, g.lessor = slots, cause
	g.bound()
}

// leaseRules reports whether the limit is that of the lease.
func (g *governed) leaseRules() bool { return g.leased > 0 && g.now == g.leased }

// blame is why work is refused for lack of capacity, if the law is not; or zero.
func (g *governed) blame() spillway.Reason {
	if g.leaseRules() {
		return spillway.Budget
	}
	return 0
}

// moving reports whether time alone changes the limit.
func (g *governed) moving() bool { return g.rampFor > 0 || g.inherited > 0 }

// tick changes what time changes and reports whether that may allow more.
func (g *governed) tick(now time.Duration) bool { return g.moving() && g.advance(now) }

func (g *governed) advance(now time.Duration) bool {
	before := g.now
	if g.inherited > 0 {
		left := 2 * (g.fades - now).Seconds() / handover.Seconds() // all of it for the first half
		if g.floor = int(g.inherited * min(left, 1)); g.floor <= 0 {
			g.inherited, g.floor = 0, 0
		}
	}
	if g.rampFor > 0 {
		if !g.began {
			g.began, g.rampAt = true, now
		}
		if g.ramp = float64(now-g.rampAt) / float64(g.rampFor); g.ramp >= 1 {
			g.rampFor = 0
		}
	}
	g.bound()
	return g.now > before
}
