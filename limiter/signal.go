package limiter

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/refusal"
)

// Signal is a reason beside latency to let less run: Memory, Scheduler, a Gauge,
// or one of your own. The worst of a limiter's signals rules, and the rejections
// it causes name it.
type Signal interface {
	// Name is the Cause of the rejections.
	Name() string
	// Level is how near to its bound the signal is. At 1 and above the limit is
	// pressed down by a fifth each time, below 0.9 it is released by a tenth. It
	// is asked at most every 100 ms, by a caller of the limiter, which it delays;
	// never by two at once.
	Level() float64
}

const (
	pollEvery    = 100 * time.Millisecond
	releaseBelow = 0.9
)

// Pressure is what the signals do to a limiter.
type Pressure struct {
	Signal string  // the worst one now; empty without signals
	Level  float64 // its level when it was last asked
	Cap    int     // what the limit is pressed down to; zero: nothing
	By     string  // the signal that pressed it there
}

// press turns levels into a cap.
type press struct {
	Pressure
	reason spillway.Reason
	signal *refusal.Row // of the user's signal that pressed
}

// worst asks every signal.
func worst(signals []Signal) (w Signal, level float64) {
	for _, s := range signals {
		if v := s.Level(); w == nil || v > level || level != level {
			w, level = s, v
		}
	}
	return w, level
}

// update takes the worst level, and the name of its signal; lim is the law's limit and
// inFlight what runs.
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
			switch s.(type) {
			case *memory:
				p.reason = spillway.Memory
			case *scheduler:
				p.reason = spillway.Scheduler
			default:
				p.signal = refusal.NewRow(spillway.Signal, p.By)
			}
		}
	case level < releaseBelow && p.Cap > 0:
		if p.Cap += max(1, p.Cap/10); p.Cap >= lim {
			p.Cap, p.By, p.reason = 0, "", 0
		}
	}
}

// row returns the rejections to refuse with.
func (p *press) row(d gate.Decision) *refusal.Row {
	if d.Reason == spillway.Signal && p.signal != nil {
		return p.signal
	}
	return refusal.Of(d.Reason)
}

// poll looks at the signals and for leaks, at most every 100 ms. The signals are
// the user's, so they run without the limiter's lock.
func (l *Limiter) poll(now time.Duration) {
	if !l.polling.TryLock() {
		return // another caller does it
	}
	defer l.polling.Unlock()
	if now < time.Duration(l.due.Load()) {
		return
	}
	l.due.Store(int64(now + pollEvery))
	s, level := worst(l.signals)
	name := ""
	if s != nil {
		name = s.Name()
	}

	now = l.lock(now)
	if s != nil {
		l.overruled = l.overruledBy() // until now
		free := l.over.bounds(&press{})
		unpressed, _ := free.Within(l.law.Limit())
		l.press.update(s, name, level, unpressed, l.gate.InFlight())
		l.bound()
		l.grant(now)
	}
	_, fresh := l.leaks(now)
	l.unlockAndReport(fresh)
}
