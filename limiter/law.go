package limiter

import (
	"time"

	"github.com/spillway-go/spillway/limit"
)

// governed is the law within the bounds that its operator set: a lowest and a
// highest limit, and a ramp for a cold start. It also lets one law take over
// from another: it then sees only work that it admitted itself, and what the other
// last said fades while it finds out more.
type governed struct {
	limit.Law
	own       bool   // the law is the limiter's choice, not the caller's
	seq       uint64 // admissions so far
	since     uint64 // those before this law
	low, high int    // zero: no bound
	now       int    // the limit within all bounds, asked for far more often than it changes

	rampFor time.Duration // zero: none, or over
	rampAt  time.Duration // when it began
	began   bool
	ramp    int

	inherited float64 // the limit of the law before; zero: none, or faded
	floor     int     // what is left of it
	fades     time.Duration
}

// handover is how long the limit of an estimate bears, half of the time fully. The
// adaptive law finds its own in about a second.
const handover = 2 * time.Second

func govern(law limit.Law, m Mode, slowStart time.Duration) *governed {
	g := &governed{Law: law, own: law == nil, rampFor: slowStart, ramp: 1}
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

// bound finds out what the limit is now. Whatever may have changed it calls it.
func (g *governed) bound() {
	n := g.Law.Limit()
	n = max(n, g.low, g.floor, 1) // whatever a law of somebody else says
	if g.high > 0 {
		n = min(n, g.high)
	}
	if g.rampFor > 0 {
		n = min(n, g.ramp)
	}
	g.now = n
}

// Admit counts.
func (g *governed) Admit(at time.Duration, load limit.Load) {
	g.seq++
	g.Law.Admit(at, load)
	g.bound()
}

// Observe passes on what the law was told of at its start.
func (g *governed) Observe(s limit.Sample, load limit.Load) {
	if s.Seq > g.since {
		s.Seq -= g.since
		g.Law.Observe(s, load)
		g.bound()
	}
}

// switched is told of a new mode.
func (g *governed) switched(now time.Duration, from, to Mode) {
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

// moving reports whether time alone changes the limit.
func (g *governed) moving() bool { return g.rampFor > 0 || g.inherited > 0 }

// tick moves what time moves and reports whether that may allow more.
func (g *governed) tick(now time.Duration) bool { return g.moving() && g.move(now) }

func (g *governed) move(now time.Duration) bool {
	defer g.bound()
	if g.inherited > 0 {
		left := 2 * (g.fades - now).Seconds() / handover.Seconds() // all of it for the first half
		if g.floor = int(g.inherited * min(left, 1)); g.floor <= 0 {
			g.inherited, g.floor = 0, 0
		}
	}
	if g.rampFor == 0 {
		return false
	}
	if !g.began {
		g.began, g.rampAt = true, now
	}
	passed := now - g.rampAt
	if passed >= g.rampFor {
		g.rampFor = 0
		return true
	}
	before := g.ramp
	g.ramp = max(1, int(float64(g.Law.Limit())*passed.Seconds()/g.rampFor.Seconds()))
	return g.ramp > before
}
