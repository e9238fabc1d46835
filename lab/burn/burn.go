// Package burn is work that only computes: it keeps a processor busy for a
// chosen time and touches no memory, so that two processors do not slow each
// other down.
package burn

import (
	"math"
	"sync/atomic"
	"time"
)

func spin(turns int) uint64 {
	x := uint64(turns) | 1
	for range turns {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// sink keeps the compiler from dropping a spin; hardly ever written.
var sink atomic.Uint64

// Turns computes for n turns of about a nanosecond each.
func Turns(turns int) {
	if x := spin(turns); x == 0 {
		sink.Store(x)
	}
}

// TurnsFor is how many turns take d on an otherwise idle processor: the fastest of
// many short tries, since a disturbance only makes a try slower.
func TurnsFor(d time.Duration) int {
	if d <= 0 {
		return 0
	}
	const try = 20_000 // some 20 µs: rarely interrupted
	best := time.Duration(math.MaxInt64)
	for range 200 {
		began := time.Now()
		Turns(try)
		best = min(best, time.Since(began))
	}
	return max(1, int(float64(d)/float64(best)*try))
}

// For returns a function that keeps a processor busy for d.
func For(d time.Duration) func() {
	turns := TurnsFor(d)
	if turns == 0 {
		return func() {}
	}
	return func() { Turns(turns) }
}
