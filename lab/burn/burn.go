// Package burn is work that only computes: it keeps a processor busy for a
// chosen time and touches no memory, so that two processors do not slow each
// other down.
package burn

import (
	"math"
	"sync/atomic"
	"time"
)

// sink keeps the compiler from dropping the work; hardly ever written.
var sink atomic.Uint64

// Turns computes for n turns of about a nanosecond each.
func Turns(n int) {
	x := uint64(n) | 1
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	if x == 0 {
		sink.Store(x)
	}
}

// For returns a function that keeps an otherwise idle processor busy for d. The fastest of
// many short tries says how many turns that is: a disturbance only makes a try slower.
func For(d time.Duration) func() {
	if d <= 0 {
		return func() {}
	}
	const try = 20_000 // some 20 µs: rarely interrupted
	best := time.Duration(math.MaxInt64)
	for range 200 {
		began := time.Now()
		Turns(try)
		best = min(best, time.Since(began))
	}
	turns := max(1, int(float64(d)/float64(best)*try))
	return func() { Turns(turns) }
}
