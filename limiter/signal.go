package limiter

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/inside"
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

// press turns the levels of signals into a cap of the limit.
type press struct {
	inside.Pressure
	row *refusal.Row // rejections while the limit is pressed down; nil: it is not
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
		if p.By == name && p.row != nil {
			return
		}
		p.By, p.row = name, refusal.Of(spillway.ReasonMemory)
		if _, ok := s.(*memory); !ok {
			p.row = refusal.NewRow(spillway.ReasonSignal, name)
		}
	case level < releaseBelow && p.Cap > 0:
		if p.Cap += max(1, p.Cap/10); p.Cap >= lim {
			p.Cap, p.By, p.row = 0, "", nil
		}
	}
}

// pressure returns the effect of the signals.
func (l *Limiter) pressure() inside.Pressure {
	l.lock(l.now())
	defer l.unlock()
	return l.press.Pressure
}

func (l *Limiter) pollIfDue(now time.Duration) {
	if now >= time.Duration(l.due.Load()) {
		l.poll(now)
	}
}

// poll watches the processors, at most every 40 ms. At most every 100 ms it checks the signals, looks
// for leaks and calls those who follow. Signals may be user code, so they run without the limiter's lock.
func (l *Limiter) poll(now time.Duration) {
	watches, signals := l.door.monitor != nil, len(l.signals) > 0 || l.leakAfter > 0 || l.followed.Load()
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
		l.beginHistory()
		l.noteRule() // before the change
		bounds := l.over.bounds(&press{})
		unpressed, _ := bounds.Within(l.law.Limit())
		l.press.update(s, name, level, unpressed, l.gate.InFlight())
		l.bound()
		l.grant(now)
	}
	l.leaks(now) // counts those that are new
	l.unlock()
	l.tell(now)
}

// gauge is a figure that the user measures.
type gauge struct {
	owned
	name  string
	read  func() float64
	limit float64
}

// Gauge returns a signal that presses when read returns limit or more. Examples are
// the wait for a connection of a database pool in seconds, and the length of a queue.
// Rejections carry the reason Signal and the name. See Signal.Level for when read is
// called; read must not call the limiter.
func Gauge(name string, read func() float64, limit float64) Signal {
	return &gauge{name: name, read: read, limit: limit}
}

// Name returns the gauge's name.
func (g *gauge) Name() string { return g.name }

// Level returns the figure divided by its limit.
func (g *gauge) Level() float64 { return g.read() / g.limit }
