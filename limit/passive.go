package limit

import (
	"fmt"
	"math"
	"time"
)

// passive is the law of NewPassive. Package gate asks it, too, how long work would take within a limit.
type passive struct {
	track
	at       time.Duration // time of the last event
	inFlight int           // since at
	win      passiveWindow
	classes  [Classes]passiveClass

	knee        float64       // estimated slots of the backend; 0: not saturated lately
	saturatedAt time.Duration // end of the last saturated window
	lowest      float64       // least that was done in a window without raised latency, in slots
	best        float64       // most that was done in such a window, and highest knee
	late        bool          // in the last window much of the work was lost
	blind       bool          // knee is a guess: nothing ended in time while the backend was saturated
	fell        bool          // knee was clearly below best
	together    time.Duration // time in which much was late and the rest well in time
	excess      float64       // of log latency in the last window, of the classes with a baseline
}

// passiveWindow is what happened since the last judgment.
type passiveWindow struct {
	area            float64       // integral of concurrency over time, in nanoseconds
	span            time.Duration // time in which anything ran
	first           int           // in flight at the beginning
	n, time         float64       // number and time of the successes
	work            float64       // usual time of the work that was done, in nanoseconds
	excess, squares float64       // sums of log latencies above the baselines, and of their squares
	late, lateTime  float64       // number and time of the work that its deadline ended
	gone            float64       // work that the backend refused, or whose caller left late
}

// passiveClass is what is known of a class.
type passiveClass struct {
	base          float64       // lowest mean of log latency, with two standard errors; 0: unknown
	at            time.Duration // when latency was last near base
	usual         mean          // latency near base, in nanoseconds
	began         time.Duration
	n, time       float64 // number and time of the successes since began
	logs, squares float64 // sums of log latencies, and of their squares
}

const (
	passiveN      = 100                    // ends in a window
	passiveSpan   = 100 * time.Millisecond // least time of a window
	passiveFew    = 50                     // samples behind a baseline
	passiveLong   = 500 * time.Millisecond // least time of those samples: samples of a moment are alike
	passiveMemory = 30 * time.Minute       // after that time a baseline or a saturation is outdated
	passiveFalls  = 5 * time.Second        // time constant with which the estimate falls
	passiveSure   = 2 * time.Second        // least time in which much was late and the rest well in time
	raisedBy      = 0.4                    // excess of log latency, plus three standard errors, that counts as raised
	fallen        = 0.6                    // part of what was done before below which throughput has clearly fallen
	mostUseful    = 0.4                    // part of what runs that may be of use, if nothing ends in time
)

// NewPassive returns a law that estimates the number of slots of a backend from traffic that is not limited. It is for
// a dry run, in which a cut is not enforced and cannot be tested. The estimate is the throughput
// of the saturated backend times the latency without a queue, by Little's law the work running in
// the backend. BBR sizes its window the same way (Cardwell et al., "BBR: Congestion-Based Congestion
// Control", 2016). The backend is saturated if latency is far above its baseline or much of the work
// is lost. Until then the limit follows the most in flight, because there is no evidence for refusing
// work.
//
// The law makes no trials, so it cannot tell:
//   - Service time from a queue that stands from the start, or for half an hour.
//   - A backend that became slower from a queue. The estimate is never below what is done, so work
//     that a slower backend does in time is not counted as too much.
//   - What a backend would do with less, if it does less the more runs in it, or runs all work at once
//     and was overloaded whenever it was saturated. State then reports the estimate as unsafe.
//   - How callers react to a limit: callers that retry or leave behave differently once they are
//     refused.
func NewPassive() Law { return newPassive() }

func newPassive() *passive { return &passive{track: newTrack(8, mostSlots)} }

// Name returns "passive".
func (p *passive) Name() string { return "passive" }

// Admit records the concurrency.
func (p *passive) Admit(at time.Duration, load Load) { p.advance(at, load.InFlight) }

func (p *passive) advance(at time.Duration, inFlight int) {
	if d := at - p.at; p.inFlight > 0 {
		p.win.area += float64(d) * float64(p.inFlight)
		p.win.span += d
	}
	p.at, p.inFlight = at, inFlight
	if p.knee == 0 && float64(inFlight) > p.value {
		p.move(float64(inFlight), "estimate: no evidence against it")
	}
}

// Observe records the sample, and updates the estimate at the end of a window.
func (p *passive) Observe(s Sample, load Load) {
	p.advance(s.End, load.InFlight)
	w, c, d := &p.win, &p.classes[s.Class%Classes], latencyOf(s)
	usual := c.usual.value
	switch s.Outcome {
	case Success:
		log := logOf(s.End - s.Start)
		w.n, w.time, w.work = w.n+1, w.time+d, w.work+usual
		if c.base > 0 {
			excess := log - c.base
			w.excess, w.squares = w.excess+excess, w.squares+excess*excess
		}
		c.n, c.time, c.logs, c.squares = c.n+1, c.time+d, c.logs+log, c.squares+log*log
		if c.n >= passiveFew && s.End-c.began >= passiveLong {
			p.learnClass(c, s.End)
		}
	case Deadline:
		w.late, w.lateTime = w.late+1, w.lateTime+d
	case Overload:
		w.gone++
	case Canceled:
		if d <= usual {
			w.work += d
		} else if d > 2*usual && usual > 0 { // the caller has left a queue
			w.gone++
		}
	default:
		w.work += min(d, usual)
	}
	// A window lasts for several pieces of work: work that ends in lockstep is no throughput.
	if w.n+w.late+w.gone >= passiveN && w.span >= max(passiveSpan, 4*time.Duration(usual)) {
		p.judge(s.End)
		p.win = passiveWindow{first: p.inFlight}
	}
}

// Forget drops what is known of a class.
func (p *passive) Forget(class uint8) { p.classes[class%Classes] = passiveClass{} }

// learnClass updates the baseline and the usual time of a class.
func (p *passive) learnClass(c *passiveClass, now time.Duration) {
	log, se := meanOf(c.logs, c.squares, c.n)
	most := max(log+2*se, 1e-9) // the lowest of many means would be too low; 0 means unknown
	switch {
	case c.base == 0 && p.knee > 0 && p.excess > raisedBy: // the times of a new class hold the queue that the others meet
		c.base, c.at = max(log-p.excess, 1e-9), now
		c.usual.add(c.time/c.n*math.Exp(-p.excess), c.n, 1000)
	case c.base == 0 && p.late: // what ends in time beside late work is not usual
	case c.base == 0 || most < c.base || now-c.at > passiveMemory:
		if (c.base > 0 || p.knee == 0) && math.Abs(c.base-most) > raisedBy { // another backend, or there was a queue all the time
			c.usual, p.knee, p.best, p.lowest = mean{}, 0, 0, 0
			p.win = passiveWindow{first: p.inFlight}
		}
		c.base = most
	}
	if c.base > 0 && log-c.base <= raisedBy {
		c.at = now
		c.usual.add(c.time/c.n, c.n, 1000)
	}
	*c = passiveClass{base: c.base, at: c.at, usual: c.usual, began: now}
}

// meanOf returns the mean of n values and its standard error.
func meanOf(sum, squares, n float64) (mean, se float64) {
	mean = sum / n
	return mean, math.Sqrt(max(squares-n*mean*mean, 0)) / n
}

// judge updates the estimate by what happened in a window.
func (p *passive) judge(now time.Duration) {
	w, span := &p.win, float64(p.win.span)
	c, ends, more := w.area/span, w.n+w.late+w.gone, float64(p.inFlight-w.first)
	done := w.work / span
	chance := done / math.Sqrt(w.n+1) // standard error
	p.late = 10*(w.late+w.gone) >= ends
	excess, se := meanOf(w.excess, w.squares, max(w.n, 1))
	p.excess = excess
	if p.late && w.together() {
		p.together += w.span
	}
	if p.blind && done > 0 {
		p.blind, p.knee = false, 0
	}
	switch trend := 3 * math.Sqrt(ends); {
	case more < -trend: // a queue drains, or the longest work is left
	case p.late && done == 0:
		p.saturatedAt = now
		if p.blind = p.blind || p.knee == 0; p.blind {
			p.knee = mostUseful * c
		}
		p.knee += p.weight() * min(mostUseful*c-p.knee, 0)
	case c > 1 && (p.late || excess > raisedBy+3*se):
		p.saturatedAt = now
		p.learnKnee(done, chance, more > trend)
	default:
		p.learnCalm(now, done, done-chance)
	}
	if p.knee > 0 {
		p.best = max(p.best, p.knee)
		p.fell = p.fell || p.knee < fallen*p.best
		p.move(math.Round(p.knee), "estimate: throughput x latency without a queue")
	}
}

// together reports whether work in time was well in time, beside much late work. Then all work runs at
// once: behind a queue, work in time is nearly late.
func (w *passiveWindow) together() bool {
	return 10*w.gone < w.n+w.late && 3*w.time*w.late < 2*w.lateTime*w.n
}

// learnCalm enters a window without raised latency. surely is what was done, less a standard error.
func (p *passive) learnCalm(now time.Duration, done, surely float64) {
	if now-p.saturatedAt > passiveMemory {
		p.knee, p.best, p.together, p.fell = 0, 0, 0, false
	}
	p.best = max(p.best, surely)
	if done > 0 && (p.lowest == 0 || done < p.lowest) {
		p.lowest = done
	}
	if p.knee > 0 {
		p.knee = max(p.knee, surely)
	}
}

// weight is that of a window by which the estimate falls.
func (p *passive) weight() float64 { return min(float64(p.win.span)/float64(passiveFalls), 0.5) }

// learnKnee updates the estimate with what a saturated backend has done in a window, in slots. Chance and
// late work only lower what is done, so the estimate rises fast and falls slowly. The estimate falls only
// while ever more work runs: otherwise what comes is done, if slowly.
func (p *passive) learnKnee(done, chance float64, grows bool) {
	falls := grows && !p.late
	surely := done - chance
	if !falls {
		surely -= chance // nothing would correct a higher one
	}
	switch {
	case p.knee == 0 && grows && done < fallen*p.best:
		p.knee = done
	case p.knee == 0:
		p.knee = max(done, p.best)
	case surely > p.knee:
		p.knee += 0.5 * (surely - p.knee)
	case falls:
		p.knee += p.weight() * (surely - p.knee)
	}
}

// Within estimates how long the work of a sample would have held its slot with at most n pieces of
// work in flight, where the sample had load beside it. Without evidence that the work has queued, the
// result is the time of the sample.
func (p *passive) Within(s Sample, load Load, n int) time.Duration {
	d, usual := s.End-s.Start, p.classes[s.Class%Classes].usual.value
	slots, running := float64(n), float64(load.InFlight)
	if usual == 0 || p.blind && s.Outcome == Deadline || running < slots && (p.knee == 0 || running < p.knee) {
		return d
	}
	if p.knee > 0 && (slots+0.5 >= p.knee || p.neverCalm()) { // with clearly fewer slots nothing would queue
		usual *= slots / p.knee
	}
	if (s.Outcome == Failed || s.Outcome == Canceled) && float64(d) < usual {
		return d
	}
	return time.Duration(usual)
}

// Unsafe reports whether the estimate must not be trusted, for a reason that State gives.
func (p *passive) Unsafe() bool { return p.blind || p.fell || p.together > passiveSure }

// neverCalm reports whether what was done was never clearly below the estimate. Then the usual times may
// contain a queue.
func (p *passive) neverCalm() bool { return p.lowest >= 0.8*p.value || p.lowest == 0 && p.knee > 0 }

// State reports the estimate, its evidence, and whether it is unsafe.
func (p *passive) State() string {
	text := fmt.Sprintf("estimate: about %d, saturated %v ago", p.Limit(), (p.at - p.saturatedAt).Round(time.Second))
	switch {
	case p.best == 0 && p.knee == 0:
		return "estimate: nothing measured yet"
	case p.neverCalm():
		text = fmt.Sprintf("estimate: at most %d, never clearly less was done, so a queue would look like work", p.Limit())
	case p.knee == 0:
		return fmt.Sprintf("estimate: never saturated, at least %d", p.Limit())
	}
	switch {
	case p.blind:
		return text + "; unsafe: nothing ended in time as soon as it was saturated"
	case p.together > passiveSure:
		return text + "; unsafe: the backend runs all work at once, and what it does with less is not known"
	case p.fell:
		return text + "; unsafe: the backend became slower, or gets less done the more runs in it"
	case p.late:
		return text + "; much is lost now, and the estimate is from before"
	}
	return text
}
