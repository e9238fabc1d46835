// Package objectpool reuses objects and never hands one out uncleared.
//
// Do not pool by habit. Reuse pays from some 64 KB up, where allocating means
// clearing fresh memory and collecting it; at a kilobyte it is noise unless
// your profile says otherwise. A string cannot be cleared, only dropped: what
// must not outlive its request belongs into a byte slice.
//
// Never pool what somebody else may still hold: a context, an object that a
// goroutine started by its user can see, one that a caller who has already left
// was to receive.
package objectpool

import (
	"sync"
	"sync/atomic"
)

// Config says how objects are made and cleared.
type Config[T any] struct {
	// New makes an object when there is none to reuse. Nil means new(T).
	New func() *T

	// Clear makes an object indistinguishable from a new one, keeping what is
	// worth keeping, such as the capacity of its slices. It must clear what
	// lies behind those slices too, up to their capacity. Nil means *t = zero.
	// It must bear being called twice.
	Clear func(*T)

	// Debug finds misuse at the price of reuse: a double Put, a Put of what Get
	// never gave and a change after Put panic, and an object once returned is
	// never handed out again. It keeps every object it has seen: for tests.
	Debug bool
}

// Pool hands out cleared objects. It is safe for concurrent use. Create it with
// New; it must not be copied.
type Pool[T any] struct {
	make  func() *T
	clear func(*T)
	debug *ledger[T]
	free  sync.Pool

	gets, reused, puts atomic.Uint64
}

// New returns an empty pool.
func New[T any](cfg Config[T]) *Pool[T] {
	p := &Pool[T]{make: cfg.New, clear: cfg.Clear}
	if p.make == nil {
		p.make = func() *T { return new(T) }
	}
	if p.clear == nil {
		p.clear = func(t *T) { *t = *new(T) }
	}
	if cfg.Debug {
		p.debug = newLedger[T]()
	}
	return p
}

// Get returns an object that is new or cleared. It belongs to the caller until
// Put. It never blocks.
func (p *Pool[T]) Get() *T {
	p.gets.Add(1)
	if p.debug != nil {
		return p.debug.get(p.make())
	}
	if t, ok := p.free.Get().(*T); ok {
		p.reused.Add(1)
		return t
	}
	return p.make()
}

// Put clears t and gives it to a later Get. The caller must not look at t, nor
// at anything that t alone owned, from then on; under -race every Put hands t to
// another goroutine that overwrites it, so that a later look is a reported race.
// Put of nil does nothing. An object that is never put is collected like any
// other.
func (p *Pool[T]) Put(t *T) {
	if t == nil {
		return
	}
	p.puts.Add(1)
	if p.debug != nil {
		p.debug.put(t, p.clear)
		return
	}
	p.clear(t)
	if raceEnabled {
		go func() { // no order with the caller: that is the point
			p.clear(t)
			overwrite(t, *t)
			p.free.Put(t)
		}()
		return
	}
	p.free.Put(t)
}

// overwrite writes all of *t and changes nothing. The compiler must not see
// that.
//
//go:noinline
func overwrite[T any](t *T, v T) { *t = v }

// Stats counts what a pool did.
type Stats struct {
	Gets   uint64
	Reused uint64 // Gets answered with an object that was Put before
	Puts   uint64
}

// ReuseRate is the true share of Gets that allocated nothing, 0 to 1; 0 before
// the first Get.
func (s Stats) ReuseRate() float64 {
	if s.Gets == 0 {
		return 0
	}
	return float64(s.Reused) / float64(s.Gets)
}

// Stats returns the counts so far. Under -race they mean little: the race
// detector drops returned objects on purpose.
func (p *Pool[T]) Stats() Stats {
	// Reused first: read the other way round, a Get in between could make it
	// exceed Gets.
	reused := p.reused.Load()
	return Stats{Reused: reused, Gets: p.gets.Load(), Puts: p.puts.Load()}
}
