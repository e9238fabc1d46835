package limiter

import (
	"time"

	"github.com/spillway-go/spillway/limit"
)

// governed is the law within the bounds that its operator set: a lowest and a
// highest limit, and a ramp for a cold start. It also lets one law take over
// from another, which then sees only work that it admitted itself.
type governed struct {
	limit.Law
	own       bool   // the law is the limiter's choice, not the caller's
	seq       uint64 // admissions so far
	since     uint64 // those before this law
	low, high int    // zero: no bound

	rampFor time.Duration // zero: none, or over
	rampAt  time.Duration // when it began
	began   bool
	ramp    int
}

func govern(law limit.Law, m Mode, slowStart time.Duration) *governed {
	g := &governed{Law: law, own: law == nil, rampFor: slowStart, ramp: 1}
	if g.own {
		g.Law = lawFor(m)
	}
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
func (g *governed) Limit() int {
	n := g.Law.Limit()
	if g.low > 0 {
		n = max(n, g.low)
	}
	if g.high > 0 {
		n = min(n, g.high)
	}
	if g.rampFor > 0 {
		n = min(n, g.ramp)
	}
	return n
}

// Admit counts.
func (g *governed) Admit(at time.Duration, load limit.Load) {
	g.seq++
	g.Law.Admit(at, load)
}

// Observe passes on what the law was told of at its start.
func (g *governed) Observe(s limit.Sample, load limit.Load) {
	if s.Seq > g.since {
		s.Seq -= g.since
		g.Law.Observe(s, load)
	}
}

// switched is told of a new mode.
func (g *governed) switched(from, to Mode) {
	if g.own && (from == DryRun) != (to == DryRun) {
		g.Law, g.since = lawFor(to), g.seq
	}
}

func (g *governed) ramping() bool { return g.rampFor > 0 }

// tick moves the ramp and reports whether it allows more.
func (g *governed) tick(now time.Duration) bool {
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
