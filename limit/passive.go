package limit

import (
	"fmt"
	"math"
	"time"
)

// Passive estimates, from traffic that nobody limits, how much a backend can run
// at once: for a dry run, where a cut is not enforced and so teaches nothing. It
// multiplies the throughput of a saturated backend by the latency it has without
// a queue, which by Little's law is what runs in it, as BBR sizes a window
// (Cardwell et al., "BBR: Congestion-Based Congestion Control", 2016). Until it
// has seen latency rise with concurrency it knows a lower bound only, says so, and
// follows the most that was in flight: nothing speaks for refusing anybody.
//
// The baseline is the lowest mean of log latency, each class on its own, over a
// window of at least a second and a hundred samples, within the last 15 to 30
// minutes, and two standard errors more.
//
// What it cannot know, because it never tries anything:
//   - A queue that stands longer than the baseline is remembered, or from the
//     start on, looks like service time; the estimate is then too high.
//   - A slower backend and a queue look alike where as much runs as it took to
//     saturate the backend before. Only slowness at well below that is told apart.
//   - What a limit would do to callers: those who retry or go away behave
//     differently once they are refused.
//   - Anything above the highest concurrency that occurred.
type Passive struct {
	track
	at       time.Duration // of the last event
	inFlight int           // since then
	win      passiveWindow
	now, old era
	raised   time.Duration // when the last saturated window ended
	last     passiveVerdict
	knee     float64 // 0: never saturated
}

// era is what a quarter of an hour has shown. The present one and the one before
// it count, so old evidence goes away.
type era struct {
	began time.Duration
	base  [Classes]float64 // of log latency; 0: unknown
	calm  float64          // highest mean concurrency without raised latency
	high  int              // most in flight in such a window
}

type passiveWindow struct {
	area   float64       // of concurrency over time, in nanoseconds
	span   time.Duration // in which anything ran
	high   int
	n, sum [Classes]float64 // of log latency
	square [Classes]float64 // sums of its square
	ends   float64
	done   float64
	signs  float64
}

// passiveVerdict is what the last window showed.
type passiveVerdict struct {
	c, rate, excess float64
	slow            bool // raised latency that is not our concurrency's doing
}

const (
	eraSpan     = 15 * time.Minute
	passiveSpan = time.Second
	passiveN    = 100 // samples in a window
	passiveFew  = 30  // samples of a class that mean something
	raisedBy    = 0.2 // of log latency, beside three standard errors
)

// NewPassive returns an estimator that has seen nothing.
func NewPassive() *Passive {
	return &Passive{track: newTrack(8, Most)}
}

// Name returns "passive".
func (p *Passive) Name() string { return "passive" }

// Admit notes the concurrency.
func (p *Passive) Admit(at time.Duration, load Load) { p.advance(at, load) }

func (p *Passive) advance(at time.Duration, load Load) {
	if d := at - p.at; d > 0 {
		if p.inFlight > 0 {
			p.win.area += float64(d) * float64(p.inFlight)
			p.win.span += d
		}
		p.at = at
	}
	p.inFlight = load.InFlight
	p.win.high = max(p.win.high, load.InFlight)
	if p.knee == 0 && float64(load.InFlight) > p.value {
		p.set(at, float64(load.InFlight), "estimate: no evidence against it", 0, 0)
	}
}

// Observe gathers the sample and estimates when the window is complete.
func (p *Passive) Observe(s Sample, load Load) {
	p.advance(s.End, load)
	w := &p.win
	w.done++
	switch s.Outcome {
	case Success, Censored: // a censored latency is at least this long
		k, x := s.Class%Classes, math.Log(took(s))
		w.n[k]++
		w.sum[k] += x
		w.square[k] += x * x
		w.ends++
		if s.Outcome == Censored {
			w.signs++
		}
	case Overload:
		w.ends++
		w.signs++
	}
	if w.span >= passiveSpan && w.ends >= passiveN {
		p.estimate(s.End)
		p.win = passiveWindow{high: load.InFlight}
	}
}

// base is the lowest baseline of a class that is remembered; 0: none.
func (p *Passive) base(k int) float64 {
	if p.old.base[k] == 0 || p.now.base[k] > 0 && p.now.base[k] < p.old.base[k] {
		return p.now.base[k]
	}
	return p.old.base[k]
}

func (p *Passive) estimate(at time.Duration) {
	w := &p.win
	if at-p.now.began >= eraSpan {
		p.old, p.now = p.now, era{began: at}
		if p.knee > 0 && at-p.raised > eraSpan {
			p.knee = 0 // that was long ago
		}
	}
	c := w.area / float64(w.span)
	drowned := 10*w.signs >= w.ends
	var excess, n, squares float64
	for k, m := range w.n {
		if m < passiveFew {
			continue
		}
		g := w.sum[k] / m
		spread := max(w.square[k]-m*g*g, 0) // sum of squares about the mean
		// What this window proves the latency to be at most: of many noisy
		// windows the lowest would be too low. A baseline of 0 is none.
		if most := max(g+2*math.Sqrt(spread)/m, 1e-9); !drowned && (p.now.base[k] == 0 || most < p.now.base[k]) {
			p.now.base[k] = most
		}
		if base := p.base(k); base > 0 {
			excess, squares, n = excess+m*(g-base), squares+spread, n+m
		}
	}
	se := 0.0
	if n > 0 {
		excess, se = excess/n, math.Sqrt(squares)/n
	}
	if drowned { // at the least, what ended in overload ran for nothing
		excess = max(excess, min(-math.Log(max(1-w.signs/w.ends, 0.5)), math.Ln2))
	}
	calm := max(p.now.calm, p.old.calm)
	p.last = passiveVerdict{c: c, rate: w.done / w.span.Seconds(), excess: excess}
	switch {
	case !drowned && excess <= raisedBy+3*se:
		p.now.calm = max(p.now.calm, c)
		p.now.high = max(p.now.high, w.high)
		if p.knee > 0 && c > p.knee {
			p.knee += 0.3 * (c - p.knee)
		}
	case !drowned && c < 0.7*calm || c <= 1:
		p.last.slow = true // less ran than went well before: not a queue of ours
	default:
		p.saturated(at, c*math.Exp(-excess))
	}
	p.publish(at)
}

// saturated takes in what ran in a saturated backend. The best throughput is the
// nearest to the plateau, so the estimate rises fast and falls slowly.
func (p *Passive) saturated(at time.Duration, knee float64) {
	p.raised = at
	switch {
	case p.knee == 0:
		p.knee = knee
	case knee > p.knee:
		p.knee += 0.3 * (knee - p.knee)
	default:
		p.knee += 0.05 * (knee - p.knee)
	}
	p.knee = max(p.knee, 1)
}

func (p *Passive) publish(at time.Duration) {
	if p.knee > 0 {
		p.set(at, math.Round(p.knee), "estimate: throughput x latency without a queue", 0, 0)
		return
	}
	if high := float64(p.calm()); high > p.value {
		p.set(at, high, "estimate: ran without raised latency", 0, 0)
	}
}

// calm is the most that is remembered in flight without raised latency.
func (p *Passive) calm() int { return max(p.now.high, p.old.high) }

// State says that it is an estimate, and on what evidence.
func (p *Passive) State() string {
	v := p.last
	switch {
	case v.c == 0:
		return "estimate: nothing measured yet"
	case v.slow:
		return fmt.Sprintf("estimate: %s; the backend has slowed, %.1f times its best latency with only %.0f in flight",
			p.evidence(), math.Exp(min(v.excess, 20)), v.c)
	}
	return "estimate: " + p.evidence()
}

func (p *Passive) evidence() string {
	if p.knee == 0 {
		if p.calm() == 0 {
			return "no calm window yet"
		}
		return fmt.Sprintf("never saturated, at least %d", p.calm())
	}
	return fmt.Sprintf("about %d, saturated %v ago, now %.0f/s with %.0f in flight at %.1f times the best latency",
		p.Limit(), (p.at - p.raised).Round(time.Second), p.last.rate, p.last.c, math.Exp(min(max(p.last.excess, 0), 20)))
}
