// Package rate measures how often something happens, from the times alone.
package rate

import "time"

// window is long enough to count, short enough to follow a change.
const window = time.Second

// Meter estimates events per second over the last one to two seconds. The zero
// value has seen nothing. It is not safe for concurrent use.
type Meter struct {
	start      time.Duration // of the current window
	count      float64       // in the current window
	last       float64       // events per second of the window before
	seen, full bool
}

// Add counts n events at now. Times must not go backwards.
func (m *Meter) Add(now time.Duration, n int) {
	m.roll(now)
	m.count += float64(n)
}

// PerSecond returns the estimate at now: the last whole window and the running
// one, weighted by how much of the running one has passed. Zero means that
// nothing was seen for two windows, or ever.
func (m *Meter) PerSecond(now time.Duration) float64 {
	if !m.seen {
		return 0
	}
	m.roll(now)
	passed := now - m.start
	if !m.full {
		// Nothing to lean on yet: at least a tenth of a window keeps the first
		// events from looking like a flood.
		return m.count / max(passed, window/10).Seconds()
	}
	w := float64(passed) / float64(window)
	return m.last*(1-w) + m.count/window.Seconds()
}

func (m *Meter) roll(now time.Duration) {
	if !m.seen {
		m.seen, m.start = true, now
		return
	}
	passed := now - m.start
	if passed < window {
		return
	}
	m.last = 0
	if passed < 2*window {
		m.last = m.count / window.Seconds()
	}
	m.full = true
	m.count = 0
	m.start += passed / window * window
}
