package limit

import (
	"fmt"
	"math"
	"time"
)

// passive is the law of NewPassive. The shadow of package gate has a passive law too, which estimates
// by Within how long work would have taken within the limit of the dry run.
type passive struct {
	track
	at          time.Duration // time of the last event
	inFlight    int           // since at
	win         passiveWindow
	now, old    era
	saturatedAt time.Duration // end of the last saturated window
	last        windowResult
	knee        float64 // estimated slots of the backend; 0: not saturated lately
	falls       falls
	unloaded    [Classes]mean // latency in recent calm windows, in nanoseconds
}

// era is the evidence of a quarter of an hour. Only the present era and the one before count, so
// old evidence expires.
type era struct {
	began  time.Duration
	base   [Classes]float64 // baseline of log latency; 0: unknown
	lowest float64          // lowest mean concurrency; 0: unknown
	calm   float64          // highest mean concurrency without raised latency
	high   int              // most in flight in a window without raised latency
	best   float64          // highest throughput, in slots like a knee
}

type passiveWindow struct {
	area      float64       // integral of concurrency over time, in nanoseconds
	span      time.Duration // time in which anything ran
	high      int
	n, sum    [Classes]float64 // number and sum of log latencies
	square    [Classes]float64 // sum of squared log latencies
	ok        [Classes]float64 // number of successes
	okTime    [Classes]float64 // time of the successes, in nanoseconds
	failed    [Classes]float64 // time of work with other outcomes, each at most the unloaded latency
	ends      float64
	overloads float64
}

// windowResult is the result of the last window.
type windowResult struct {
	c, rate, excess float64 // mean concurrency, successes per second, excess of log latency
	slow            bool    // latency is raised, but not by our concurrency
	overloaded      bool    // much of the work runs into its deadline
}

const (
	eraSpan      = 15 * time.Minute
	passiveSpan  = time.Second
	passiveN     = 100 // least samples in a window
	passiveFew   = 30  // least samples of a class for a meaningful mean
	passiveLong  = 1000
	raisedBy     = 0.2 // excess of log latency, plus three standard errors, that counts as raised
	clearlyBelow = 0.8 // share of the estimate below which concurrency is clearly below the estimate
)

// NewPassive returns a law that estimates the number of slots of a backend from traffic that is not limited. It is for
// a dry run, in which a cut is not enforced and cannot be tested. The estimate is the throughput
// of the saturated backend times the latency without a queue, by Little's law the work running in
// the backend. BBR sizes its window the same way (Cardwell et al., "BBR: Congestion-Based Congestion
// Control", 2016). Until latency rises with concurrency, the law has only a lower bound. State
// then reports a lower bound, and the limit follows the most in flight, because there is no
// evidence for refusing work.
//
// The baseline is the lowest mean of log latency per class, plus two standard errors. The mean is
// over a window of at least a second and a hundred samples, within the last 15 to 30 minutes.
// Throughput counts finished work: work ended by its deadline held a slot for nothing, or never
// had one. While at least a tenth of the work runs into its deadline, the estimate may be raised
// as usual, but is not lowered.
//
// The law makes no trials, so it cannot tell:
//   - Service time from a queue, if the queue stands from the start or for longer than the memory
//     of the baseline. The estimate is then too high. State says so until clearly fewer pieces of
//     work than the estimate were in flight.
//   - A slower backend from a queue, at a concurrency that saturated the backend before. Slowness
//     is recognized only well below that concurrency.
//   - Anything, if work runs into its deadlines from the start.
//   - The capacity of an unprotected backend whose throughput falls with more load. The estimate
//     is the earlier throughput and may be far too low. If the fall is visible, State reports the
//     estimate as unsafe.
//   - The reaction of callers to a limit: callers that retry or leave behave differently once they
//     are refused.
//   - Anything above the highest concurrency that occurred.
func NewPassive() Law { return newPassive() }

func newPassive() *passive {
	return &passive{track: newTrack(8, mostSlots)}
}

// Name returns "passive".
func (p *passive) Name() string { return "passive" }

// Admit records the concurrency.
func (p *passive) Admit(at time.Duration, load Load) { p.advance(at, load) }

func (p *passive) advance(at time.Duration, load Load) {
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

// Observe records the sample and updates the estimate at the end of each window.
func (p *passive) Observe(s Sample, load Load) {
	before := p.inFlight
	p.advance(s.End, load)
	p.falls.end(before, s.Outcome, latencyOf(s))
	w, k := &p.win, s.Class%Classes
	switch s.Outcome {
	case Success, Deadline: // a censored latency is at least this long
		x := math.Log(latencyOf(s))
		w.n[k]++
		w.sum[k] += x
		w.square[k] += x * x
		w.ends++
		if s.Outcome == Deadline {
			w.overloads++
		} else {
			w.ok[k]++
			w.okTime[k] += latencyOf(s)
		}
	case Overload:
		w.ends++
		w.overloads++
	default:
		w.failed[k] += min(latencyOf(s), p.unloaded[k].value)
	}
	if w.span >= passiveSpan && w.ends >= passiveN {
		p.estimate(s.End)
		p.win = passiveWindow{high: load.InFlight}
	}
}

// Forget drops the baseline of a class.
func (p *passive) Forget(class uint8) {
	k, w := class%Classes, &p.win
	p.now.base[k], p.old.base[k], p.unloaded[k] = 0, 0, mean{}
	w.n[k], w.sum[k], w.square[k], w.ok[k], w.okTime[k], w.failed[k] = 0, 0, 0, 0, 0, 0
}

// base is the lowest baseline of a class of both eras; 0: none.
func (p *passive) base(k int) float64 {
	if p.old.base[k] == 0 || p.now.base[k] > 0 && p.now.base[k] < p.old.base[k] {
		return p.now.base[k]
	}
	return p.old.base[k]
}

// lowest is the lowest mean concurrency of both eras; 0: none.
func (p *passive) lowest() float64 {
	if p.old.lowest == 0 || p.now.lowest > 0 && p.now.lowest < p.old.lowest {
		return p.now.lowest
	}
	return p.old.lowest
}

// neverBelow reports whether concurrency was never clearly below the estimate. Then the baseline may
// contain a queue.
func (p *passive) neverBelow() bool { return p.lowest() >= clearlyBelow*p.value }

// compared reports whether the evidence covers more than one window.
func (p *passive) compared() bool { return p.knee > 0 || p.lowest() < max(p.now.calm, p.old.calm) }

func (p *passive) estimate(at time.Duration) {
	w := &p.win
	if at-p.now.began >= eraSpan {
		p.old, p.now = p.now, era{began: at}
		p.falls.age()
		if p.knee > 0 && at-p.saturatedAt > eraSpan {
			p.knee = 0 // the last saturation was long ago
		}
	}
	c, neverBelow := w.area/float64(w.span), p.neverBelow()
	if p.now.lowest == 0 || c < p.now.lowest {
		p.now.lowest = c
	}
	overloaded := 10*w.overloads >= w.ends
	var excess, n, squares float64
	for k, m := range w.n {
		if m < passiveFew {
			continue
		}
		g := w.sum[k] / m
		spread := max(w.square[k]-m*g*g, 0) // sum of squared deviations from the mean
		// most is an upper bound of the latency in this window: the lowest mean of many noisy
		// windows would be too low. most is kept above 0, because 0 means no baseline.
		if most := max(g+2*math.Sqrt(spread)/m, 1e-9); !overloaded && (p.now.base[k] == 0 || most < p.now.base[k]) {
			if fell := p.base(k) - most; fell > raisedBy { // the calm windows contained a queue
				p.unloaded[k] = mean{}
				if neverBelow {
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
	if overloaded { // work that ended in overload ran for nothing and counts as excess
		excess = max(excess, min(-math.Log(max(1-w.overloads/w.ends, 0.5)), math.Ln2))
	}
	calm := max(p.now.calm, p.old.calm)
	ok := 0.0
	for _, n := range w.ok {
		ok += n
	}
	p.last = windowResult{c: c, rate: ok / w.span.Seconds(), excess: excess, overloaded: overloaded}
	switch {
	case !overloaded && excess <= raisedBy+3*se:
		p.now.calm = max(p.now.calm, c)
		p.now.high = max(p.now.high, w.high)
		for k, n := range w.ok {
			if n > 0 {
				p.unloaded[k].add(w.okTime[k]/n, n, passiveLong)
			}
		}
		if p.knee > 0 && c > p.knee {
			p.knee += 0.3 * (c - p.knee)
		}
	case !overloaded && c < 0.7*calm || c <= 1:
		p.last.slow = true // more work ran without raised latency before: our load made no queue
	default:
		p.saturatedAt = at
		p.learnKnee(c*math.Exp(-excess), overloaded)
	}
	if !overloaded {
		p.now.best = max(p.now.best, p.finished())
	}
	p.publish(at)
}

// learnKnee updates the estimate from a window of a saturated backend. By Little's law the number
// of slots is the finished work times its unloaded latency, over the time. If the unloaded latency
// is not known, most is an upper bound. The best throughput is closest to the plateau, so the
// estimate rises fast and falls slowly.
func (p *passive) learnKnee(most float64, overloaded bool) {
	knee := p.finished()
	if knee == 0 && p.knee == 0 {
		knee = most
	}
	switch {
	case p.knee == 0:
		p.knee = max(knee, p.now.best, p.old.best) // throughput may collapse at once
	case knee > p.knee:
		p.knee += 0.9 * (knee - p.knee)
	case overloaded && knee > 0: // late work says little about the capacity
	case overloaded: // no work finishes
		p.knee += 0.05 * (min(most, p.knee) - p.knee)
	default:
		p.knee += 0.05 * (knee - p.knee)
	}
	p.knee = max(p.knee, 1)
}

// finished is the throughput of the window in slots, less a margin for chance, since the highest
// of many windows counts.
func (p *passive) finished() float64 {
	work, n := 0.0, 1.0
	for k, m := range p.unloaded {
		work += p.win.ok[k]*m.value + p.win.failed[k]
		n += p.win.ok[k]
	}
	return work / float64(p.win.span) * (1 - 1/math.Sqrt(n))
}

// Within estimates how long the work of a sample would have held its slot with at most n pieces of
// work in flight. Call Within after Observe of the sample. Without enough evidence, Within returns
// the sample's own duration.
func (p *passive) Within(s Sample, n int) time.Duration {
	m, most := p.unloaded[s.Class%Classes], float64(n)
	stretch := 1.0
	if p.knee > 0 && (most > p.knee || p.neverBelow()) {
		stretch, most = most/p.knee, min(most, p.knee)
	}
	d := s.End - s.Start
	ended := s.Outcome == Failed || s.Outcome == Canceled
	if m.n == 0 || !p.compared() || float64(p.inFlight+1) <= most || ended && float64(d) < m.value*stretch {
		return d // the work did not queue, or there is no evidence
	}
	return time.Duration(m.value * stretch)
}

func (p *passive) publish(at time.Duration) {
	if p.knee > 0 {
		p.move(math.Round(p.knee), "estimate: throughput x latency without a queue")
		return
	}
	if high := float64(p.high()); high > p.value {
		p.move(high, "estimate: ran without raised latency")
	}
}

// high is the most in flight without raised latency of both eras.
func (p *passive) high() int { return max(p.now.high, p.old.high) }

// State reports the estimate, its evidence, and whether it is unsafe.
func (p *passive) State() string { return p.estimated() + p.falling() }

func (p *passive) estimated() string {
	v := p.last
	switch {
	case v.c == 0:
		return "estimate: nothing measured yet"
	case p.unknown():
		return fmt.Sprintf("estimate: nothing can be known, work has run into its deadlines from the start on, now with %.0f in flight", v.c)
	case v.overloaded:
		return fmt.Sprintf("estimate: about %d, from before so much ran into its deadlines, now %.0f/s in time with %.0f in flight",
			p.Limit(), v.rate, v.c)
	case v.slow:
		return fmt.Sprintf("estimate: %s; the backend has slowed, %.1f times its best latency with only %.0f in flight",
			p.evidence(), math.Exp(min(v.excess, 20)), v.c)
	}
	return "estimate: " + p.evidence()
}

func (p *passive) evidence() string {
	const blind = "%.0f and more in flight ever since it began, so a queue would look like work"
	switch {
	case p.knee == 0 && p.high() == 0:
		return "no calm window yet"
	case p.knee == 0 && p.neverBelow():
		return fmt.Sprintf("not known yet, "+blind, p.lowest())
	case p.knee == 0:
		return fmt.Sprintf("never saturated, at least %d", p.high())
	case p.neverBelow():
		return fmt.Sprintf("at most about %d, "+blind, p.Limit(), p.lowest())
	}
	return fmt.Sprintf("about %d, saturated %v ago, now %.0f/s with %.0f in flight at %.1f times the best latency",
		p.Limit(), (p.at - p.saturatedAt).Round(time.Second), p.last.rate, p.last.c, math.Exp(min(max(p.last.excess, 0), 20)))
}
