// Package gauge counts what is under way and remembers the most there ever was.
package gauge

import "sync/atomic"

// Gauge counts entries that have not left. The zero value is ready and safe for
// concurrent use.
type Gauge struct{ now, peak atomic.Int64 }

// Enter counts one more.
func (g *Gauge) Enter() {
	n := g.now.Add(1)
	for {
		peak := g.peak.Load()
		if n <= peak || g.peak.CompareAndSwap(peak, n) {
			return
		}
	}
}

// Leave counts one less.
func (g *Gauge) Leave() { g.now.Add(-1) }

// Now returns how many are under way.
func (g *Gauge) Now() int { return int(g.now.Load()) }

// Peak returns the most that were ever under way at one time.
func (g *Gauge) Peak() int { return int(g.peak.Load()) }
