package limit

import (
	"fmt"
	"math"
	"time"
)

// Passive estimates, from traffic that is not limited, how much a backend can run
// at once: for a dry run, where a cut is not enforced and so teaches nothing. It
// multiplies the throughput of a saturated backend by the latency it has without
// a queue, which by Little's law is what runs in it, as BBR sizes a window
// (Cardwell et al., "BBR: Congestion-Based Congestion Control", 2016). Until it
// has seen latency rise with concurrency it knows a lower bound only, says so, and
// follows the most that was in flight: nothing speaks for refusing anybody.
//
// The baseline is the lowest mean of log latency, each class on its own, over a
// window of at least a second and a hundred samples, within the last 15 to 30
// minutes, and two standard errors more. Throughput is what was finished: work that
// its deadline ended held a slot for nothing, or never had one. So an estimate is
// raised as ever, but not lowered, while a tenth and more runs into its deadlines.
//
// What it cannot know, because it never tries anything:
//   - A queue that stands longer than the baseline is remembered, or from the
//     start on, looks like service time; the estimate is then too high. It says so
//     as long as there never was clearly less in flight than it says.
//   - A slower backend and a queue look alike where as much runs as it took to
//     saturate the backend before. Only slowness at well below that is told apart.
//   - Anything, if work runs into its deadlines from the start on.
//   - What a backend can do that does less and less the more is asked of it, and is
//     not protected. The estimate is what it did before, and may be too low by far.
//     Where that shows it says that it is unsafe.
//   - What a limit would do to callers: those that retry or go away behave
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
	falls    falls
	unloaded [Classes]mean // time in nanoseconds, in calm windows of late
}

// era is what a quarter of an hour has shown. The present one and the one before
// it count, so old evidence goes away.
type era struct {
	began time.Duration
	base  [Classes]float64 // of log latency; 0: unknown
	least float64          // lowest mean concurrency; 0: unknown
	calm  float64          // highest mean concurrency without raised latency
	high  int              // most in flight in such a window
	best  float64          // highest throughput, in slots as a knee is
}

type passiveWindow struct {
	area   float64       // of concurrency over time, in nanoseconds
	span   time.Duration // in which anything ran
	high   int
	n, sum [Classes]float64 // of log latency
	square [Classes]float64 // sums of its square
	ok     [Classes]float64 // successes
	took   [Classes]float64 // by them, in nanoseconds
	failed [Classes]float64 // time of those, unloaded at most
	ends   float64
	signs  float64
}

// passiveVerdict is what the last window showed.
type passiveVerdict struct {
	c, rate, excess float64
	slow            bool // raised latency that is not our concurrency's doing
	drowned         bool // much runs into its deadlines
}

const (
	eraSpan     = 15 * time.Minute
	passiveSpan = time.Second
	passiveN    = 100 // samples in a window
	passiveFew  = 30  // samples of a class that mean something
	passiveLong = 1000
	raisedBy    = 0.2 // of log latency, beside three standard errors
	blindFrom   = 0.8 // of the estimate
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
		p.falls.pass(at, d, p.inFlight)
	}
	p.inFlight = load.InFlight
	p.win.high = max(p.win.high, load.InFlight)
	if p.knee == 0 && float64(load.InFlight) > p.value {
		p.move(float64(load.InFlight), "estimate: no evidence against it")
	}
}

// Observe gathers the sample and estimates when the window is complete.
func (p *Passive) Observe(s Sample, load Load) {
	before := p.inFlight
	p.advance(s.End, load)
	p.falls.end(before, s.Outcome, took(s))
	w, k := &p.win, s.Class%Classes
	switch s.Outcome {
	case Success, Deadline: // a censored latency is at least this long
		x := math.Log(took(s))
		w.n[k]++
		w.sum[k] += x
		w.square[k] += x * x
		w.ends++
		if s.Outcome == Deadline {
			w.signs++
		} else {
			w.ok[k]++
			w.took[k] += took(s)
		}
	case Overload:
		w.ends++
		w.signs++
	default:
		w.failed[k] += min(took(s), p.unloaded[k].level)
	}
	if w.span >= passiveSpan && w.ends >= passiveN {
		p.estimate(s.End)
		p.win = passiveWindow{high: load.InFlight}
	}
}

// Forget drops the baseline of a class.
func (p *Passive) Forget(class uint8) {
	k, w := class%Classes, &p.win
	p.now.base[k], p.old.base[k], p.unloaded[k] = 0, 0, mean{}
	w.n[k], w.sum[k], w.square[k], w.ok[k], w.took[k], w.failed[k] = 0, 0, 0, 0, 0, 0
}

// base is the lowest baseline of a class that is remembered; 0: none.
func (p *Passive) base(k int) float64 {
	if p.old.base[k] == 0 || p.now.base[k] > 0 && p.now.base[k] < p.old.base[k] {
		return p.now.base[k]
	}
	return p.old.base[k]
}

// least is the lowest mean concurrency that is remembered; 0: none.
func (p *Passive) least() float64 {
	if p.old.least == 0 || p.now.least > 0 && p.now.least < p.old.least {
		return p.now.least
	}
	return p.old.least
}

// blind reports whether the backend was never seen with clearly less in flight than
// the estimate: then what passes for work without a queue may be one.
func (p *Passive) blind() bool { return p.least() >= blindFrom*p.value }

// compared reports whether there is more than one window to judge by.
func (p *Passive) compared() bool { return p.knee > 0 || p.least() < max(p.now.calm, p.old.calm) }

func (p *Passive) estimate(at time.Duration) {
	w := &p.win
	if at-p.now.began >= eraSpan {
		p.old, p.now = p.now, era{began: at}
		p.falls.age()
		if p.knee > 0 && at-p.raised > eraSpan {
			p.knee = 0 // that was long ago
		}
	}
	c, blind := w.area/float64(w.span), p.blind()
	if p.now.least == 0 || c < p.now.least {
		p.now.least = c
	}
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
			if fell := p.base(k) - most; fell > raisedBy { // what looked calm was a queue
				p.unloaded[k] = mean{}
				if blind {
					p.knee *= math.Exp(-fell)
				}
			}
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
	ok := 0.0
	for _, n := range w.ok {
		ok += n
	}
	p.last = passiveVerdict{c: c, rate: ok / w.span.Seconds(), excess: excess, drowned: drowned}
	switch {
	case !drowned && excess <= raisedBy+3*se:
		p.now.calm = max(p.now.calm, c)
		p.now.high = max(p.now.high, w.high)
		for k, n := range w.ok {
			if n > 0 {
				p.unloaded[k].add(w.took[k]/n, n, passiveLong)
			}
		}
		if p.knee > 0 && c > p.knee {
			p.knee += 0.3 * (c - p.knee)
		}
	case !drowned && c < 0.7*calm || c <= 1:
		p.last.slow = true // less ran than went well before: not a queue of ours
	default:
		p.raised = at
		p.saturated(c*math.Exp(-excess), drowned)
	}
	if !drowned {
		p.now.best = max(p.now.best, p.finished())
	}
	p.publish(at)
}

// saturated takes in what a saturated backend did: by Little's law the slots it has
// are the work it finished, as long as it takes without a queue, over the time. With
// no such time known they are at most so many. The best throughput is the nearest to
// the plateau, so the estimate rises fast and falls slowly.
func (p *Passive) saturated(most float64, drowned bool) {
	knee := p.finished()
	if knee == 0 && p.knee == 0 {
		knee = most
	}
	switch {
	case p.knee == 0:
		p.knee = max(knee, p.now.best, p.old.best) // what went well may collapse at once
	case knee > p.knee:
		p.knee += 0.9 * (knee - p.knee)
	case drowned && knee > 0: // what is late says little about what could be done
	case drowned: // nothing is done any more
		p.knee += 0.05 * (min(most, p.knee) - p.knee)
	default:
		p.knee += 0.05 * (knee - p.knee)
	}
	p.knee = max(p.knee, 1)
}

// finished is the throughput of the window in slots, less what may be luck: of many
// the highest counts.
func (p *Passive) finished() float64 {
	work, n := 0.0, 1.0
	for k, m := range p.unloaded {
		work += p.win.ok[k]*m.level + p.win.failed[k]
		n += p.win.ok[k]
	}
	return work / float64(p.win.span) * (1 - 1/math.Sqrt(n))
}

// Within estimates how long the work of a sample would have held its slot had no
// more than n run. Call it when the sample has been observed. What it cannot tell it
// leaves as it was.
func (p *Passive) Within(s Sample, n int) time.Duration {
	m, most := p.unloaded[s.Class%Classes], float64(n)
	stretch := 1.0
	if p.knee > 0 && (most > p.knee || p.blind()) {
		stretch, most = most/p.knee, min(most, p.knee)
	}
	d := s.End - s.Start
	ended := s.Outcome == Failed || s.Outcome == Canceled
	if m.n == 0 || !p.compared() || float64(p.inFlight+1) <= most || ended && float64(d) < m.level*stretch {
		return d // it had a slot to itself, or nothing is known
	}
	return time.Duration(m.level * stretch)
}

func (p *Passive) publish(at time.Duration) {
	if p.knee > 0 {
		p.move(math.Round(p.knee), "estimate: throughput x latency without a queue")
		return
	}
	if high := float64(p.calm()); high > p.value {
		p.move(high, "estimate: ran without raised latency")
	}
}

// calm is the most that is remembered in flight without raised latency.
func (p *Passive) calm() int { return max(p.now.high, p.old.high) }

// State says that it is an estimate, on what evidence, and whether it is unsafe.
func (p *Passive) State() string { return p.estimated() + p.falling() }

func (p *Passive) estimated() string {
	v := p.last
	switch {
	case v.c == 0:
		return "estimate: nothing measured yet"
	case p.unknown():
		return fmt.Sprintf("estimate: nothing can be known, work has run into its deadlines from the start on, now with %.0f in flight", v.c)
	case v.drowned:
		return fmt.Sprintf("estimate: about %d, from before so much ran into its deadlines, now %.0f/s in time with %.0f in flight",
			p.Limit(), v.rate, v.c)
	case v.slow:
		return fmt.Sprintf("estimate: %s; the backend has slowed, %.1f times its best latency with only %.0f in flight",
			p.evidence(), math.Exp(min(v.excess, 20)), v.c)
	}
	return "estimate: " + p.evidence()
}

func (p *Passive) evidence() string {
	const blind = "%.0f and more in flight ever since it began, so a queue would look like work"
	switch {
	case p.knee == 0 && p.calm() == 0:
		return "no calm window yet"
	case p.knee == 0 && p.blind():
		return fmt.Sprintf("not known yet, "+blind, p.least())
	case p.knee == 0:
		return fmt.Sprintf("never saturated, at least %d", p.calm())
	case p.blind():
		return fmt.Sprintf("at most about %d, "+blind, p.Limit(), p.least())
	}
	return fmt.Sprintf("about %d, saturated %v ago, now %.0f/s with %.0f in flight at %.1f times the best latency",
		p.Limit(), (p.at - p.raised).Round(time.Second), p.last.rate, p.last.c, math.Exp(min(max(p.last.excess, 0), 20)))
}
