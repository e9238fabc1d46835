package pools

import (
	"math"
	"sync/atomic"
	"time"
)

// spin burns a processor for so many turns. It touches no memory, so that jobs
// on two processors do not slow each other down.
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

func burn(turns int) {
	if x := spin(turns); x == 0 {
		sink.Store(x)
	}
}

// turnsFor is how many turns take d on a processor that does nothing else: the
// fastest of many short tries, since a disturbance only makes one slower.
func turnsFor(d time.Duration) int {
	if d <= 0 {
		return 0
	}
	const try = 20_000 // some 20 µs: rarely interrupted
	best := time.Duration(math.MaxInt64)
	for range 200 {
		began := time.Now()
		burn(try)
		best = min(best, time.Since(began))
	}
	return max(1, int(float64(d)/float64(best)*try))
}

// work is a function that keeps a processor busy for d.
func work(d time.Duration) func() {
	turns := turnsFor(d)
	if turns == 0 {
		return func() {}
	}
	return func() { burn(turns) }
}
