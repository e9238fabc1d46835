package loadgen

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"time"
)

// Schedule sets when the requests of an open loop should start. At is a pure function: it always
// returns the same result, reads no clock and may be called by many goroutines.
type Schedule interface {
	// At returns the intended start of request n, counted from the start of the
	// run; it never falls as n rises. After the last request ok is false and
	// offset is the length of the whole schedule: Run does not return before.
	At(n uint64) (offset time.Duration, ok bool)
}

// Constant spaces requests evenly: rate a second, for d. At is O(1).
func Constant(rate float64, d time.Duration) Schedule { return constant{rate, d} }

// Poisson draws the gaps between requests from an exponential distribution, as with independent
// callers: rate a second on average, for d. The same seed gives the same schedule. At(n) is O(n);
// [Times] and Run walk the schedule at O(1) a request.
func Poisson(rate float64, d time.Duration, seed uint64) Schedule {
	return poisson{constant{rate, d}, seed}
}

// Times yields the intended starts of s in order.
func Times(s Schedule) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		next := walk(s)
		for at, ok := next(); ok && yield(at); at, ok = next() {
		}
	}
}

// walk returns a function whose calls return s.At(0), s.At(1), and so on.
func walk(s Schedule) func() (time.Duration, bool) {
	if w, ok := s.(interface {
		walk() func() (time.Duration, bool)
	}); ok {
		return w.walk()
	}
	var n uint64
	return func() (time.Duration, bool) {
		n++
		return s.At(n - 1)
	}
}

type constant struct {
	rate   float64
	length time.Duration
}

func (c constant) check() error {
	if !(c.rate > 0 && c.rate <= 1e9) {
		return fmt.Errorf("loadgen: a rate of %v: want requests per second, more than 0 and at most 1e9", c.rate)
	}
	if c.length <= 0 {
		return fmt.Errorf("loadgen: a schedule of %v: want more than 0", c.length)
	}
	return nil
}

func (c constant) At(n uint64) (time.Duration, bool) {
	at := float64(n) * 1e9 / c.rate // multiplied first: whole milliseconds stay whole
	if at < float64(c.length) {
		return time.Duration(at), true
	}
	return c.length, false
}

type poisson struct {
	constant
	seed uint64
}

func (p poisson) At(n uint64) (time.Duration, bool) {
	next := p.walk()
	for range n {
		if _, ok := next(); !ok {
			break
		}
	}
	return next()
}

func (p poisson) walk() func() (time.Duration, bool) {
	random := rand.New(rand.NewPCG(p.seed, 0x706f6973736f6e))
	at := 0.0
	return func() (time.Duration, bool) {
		at += random.ExpFloat64() * 1e9 / p.rate
		if at < float64(p.length) {
			return time.Duration(at), true
		}
		return p.length, false
	}
}
