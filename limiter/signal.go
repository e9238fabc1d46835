package limiter

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/processors"
	"github.com/spillway-go/spillway/internal/refusal"
)

// Signal is a reason other than latency to lower the limit: Memory, a Gauge, or a
// user-defined signal. The signal with the highest level rules, and the rejections name
// their signal. Processors need no signal: see Config.IgnoreProcessors.
type Signal interface {
	// Name returns the Cause of the rejections.
	Name() string
	// Level returns how near the signal is to its bound. Each check that finds a highest
	// level of 1 or more presses the limit down by a fifth. Each check that finds less
	// than 0.9 raises a pressed limit by a tenth. Level is called at most every 100 ms,
	// by one caller of the limiter at a time, which Level delays.
	Level() float64
}

const (
	pollEvery    = 100 * time.Millisecond
	releaseBelow = 0.9
)

// Pressure is the effect of the signals on a limiter.
type Pressure struct {
	Signal string  // name of the highest signal now; empty without signals
	Level  float64 // level of Signal at the last check
	Cap    int     // the limit is pressed down to Cap; zero: no pressure
	By     string  // name of the signal that caused Cap
}

// press turns the levels of signals into a cap of the limit.
type press struct {
	Pressure
	reason spillway.Reason
	signal *refusal.Row // rejections of a user-defined signal
}

// worst returns the signal with the highest level, and the level.
func worst(signals []Signal) (w Signal, level float64) {
	for _, s := range signals {
		if v := s.Level(); w == nil || v > level || level != level {
			w, level = s, v
		}
	}
	return w, level
}

// update adjusts the cap to the level of s, the highest signal; lim is the limit without
// signals, and inFlight the number of slots in use.
func (p *press) update(s Signal, name string, level float64, lim, inFlight int) {
	p.Signal, p.Level = name, level
	switch {
	case level >= 1:
		from := min(lim, max(inFlight, 1))
		if p.Cap > 0 {
			from = min(lim, p.Cap)
		}
		p.Cap = max(1, from*4/5)
		if p.By != p.Signal || p.reason == 0 {
			p.By, p.reason, p.signal = p.Signal, spillway.Signal, nil
			if _, ok := s.(*memory); ok {
				p.reason = spillway.Memory
			} else {
				p.signal = refusal.NewRow(spillway.Signal, p.By)
			}
		}
	case level < releaseBelow && p.Cap > 0:
		if p.Cap += max(1, p.Cap/10); p.Cap >= lim {
			p.Cap, p.By, p.reason = 0, "", 0
		}
	}
}

// row returns the row of rejections for the decision d.
func (p *press) row(d gate.Decision) *refusal.Row {
	if d.Reason == spillway.Signal && p.signal != nil {
		return p.signal
	}
	return refusal.Of(d.Reason)
}

func (l *Limiter) pollIfDue(now time.Duration) {
	if now >= time.Duration(l.due.Load()) {
		l.poll(now)
	}
}

// poll watches the processors, at most every 40 ms, and checks the signals and looks for
// leaks, at most every 100 ms. Signals may be user code, so they run without the limiter's lock.
func (l *Limiter) poll(now time.Duration) {
	l.check()
	watches, signals := l.door.monitor != nil, len(l.signals) > 0 || l.leakAfter > 0
	if watches {
		l.due.Store(int64(now + processors.Every))
		l.lookAtProcessors(now)
	}
	if !signals || !l.polling.TryLock() {
		return // another caller polls
	}
	defer l.polling.Unlock()
	if now < l.nextPoll {
		return
	}
	if l.nextPoll = now + pollEvery; !watches {
		l.due.Store(int64(l.nextPoll))
	}
	s, level := worst(l.signals)
	name := ""
	if s != nil {
		name = s.Name()
	}

	now = l.lock(now)
	if s != nil {
		l.overruled = l.overruledBy() // before the change
		free := l.over.bounds(&press{})
		unpressed, _ := free.Within(l.law.Limit())
		l.press.update(s, name, level, unpressed, l.gate.InFlight())
		l.bound()
		l.grant(now)
	}
	l.leaks(now) // counts those that are new
	l.unlock()
}
