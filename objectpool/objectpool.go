// Package objectpool reuses objects and never hands one out uncleared.
//
// Do not pool by habit. Reuse pays from some 64 KB up, where allocating means
// clearing fresh memory and collecting it; below that it is noise unless your
// profile says otherwise. A string cannot be cleared, only dropped: what must
// not outlive its request belongs into a byte slice, or into a [Buffer].
//
// Never pool what other code may still hold: a context, an object that a
// goroutine started by its user can see, one that a caller that has already left
// was to receive.
//
// # What is kept
//
// Objects that are put back are held strongly, as many as were in use at the
// same time in the last minute or so, up to a budget of bytes; beyond it a
// sync.Pool takes them, which collections empty. So a load that comes in bursts
// finds its objects again, and an idle pool gives them up: by a timer, not by a
// goroutine, half of what was not needed every ten seconds. A collection is
// still what frees their memory.
//
// # Finding misuse
//
// A pool is the one place in Go where memory is used after it was freed. Build
// tests with -race, or with -asan where cgo is at hand: Put then hands every
// object to another goroutine that overwrites it, or poisons its memory, so that
// code that still looks at it is reported, and panics if Clear forgot a field.
// Neither costs a normal build anything. Config.Debug finds what only
// bookkeeping can: objects of another origin, and those that never came back.
package objectpool

import (
	"math"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
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

	// KeepsState says that an object remembers something from use to use on
	// purpose, such as a counter. Builds with -race or -asan then do not compare
	// cleared objects with new ones.
	KeepsState bool

	// Budget bounds the bytes of idle objects held strongly: all share three
	// quarters of it, the rest is for what each processor keeps. Zero means 256 MiB;
	// below zero none is.
	Budget int

	// MaxSize is the size in bytes above which an object is dropped by Put, so
	// that one outlier is not carried along for ever. Zero means 16 MiB.
	MaxSize int

	// Size returns how many bytes an object holds, once cleared. Nil means those
	// of a T and behind the slices in it, but not behind pointers and maps.
	Size func(*T) int

	// Debug finds misuse at the price of reuse: a double Put, a Put of what Get
	// never gave and a change after Put panic, an object once returned is never
	// handed out again, and Leaks tells of objects that were not put. It keeps
	// every object it has seen: for tests.
	Debug bool
}

const (
	defaultBudget  = 256 << 20
	defaultMaxSize = 16 << 20
)

const useNew = "objectpool: this Pool was not made: use New"

// Pool hands out cleared objects. It is safe for concurrent use. Create it with
// New, or Get and Put panic; it must not be copied.
type Pool[T any] struct {
	make    func() *T
	clear   func(*T)
	size    func(*T) int // nil: all are of one size
	memory  memory[T]
	maxSize int
	debug   *ledger[T]
	compare bool

	tier tier[T]
	free sync.Pool // of *T, behind the tier

	made, dropped counter
	samples       samples[T] // in checked builds
}

// New returns an empty pool. It starts nothing.
func New[T any](cfg Config[T]) *Pool[T] {
	budget := cfg.Budget
	if budget == 0 {
		budget = defaultBudget
	}
	var left atomic.Int64
	left.Store(toShare(budget))
	return newPool(cfg, budget, &left)
}

// newPool returns a pool that shares what is left of its budget.
func newPool[T any](cfg Config[T], budget int, left *atomic.Int64) *Pool[T] {
	p := &Pool[T]{
		make: cfg.New, clear: cfg.Clear, size: cfg.Size, memory: memoryOf[T](), maxSize: cfg.MaxSize,
		compare: cfg.Clear != nil && !cfg.KeepsState,
	}
	p.tier.init(budget, left)
	if p.make == nil {
		p.make = func() *T { return new(T) }
	}
	if p.clear == nil {
		p.clear = zero[T]()
	}
	if p.size == nil {
		p.size = p.memory.sizer()
	}
	if p.maxSize == 0 {
		p.maxSize = defaultMaxSize
	}
	if cfg.Debug {
		p.debug = newLedger[T]()
	}
	return p
}

// zero returns what makes a T zero, the faster way if it is free of pointers.
func zero[T any]() func(*T) {
	if size := unsafe.Sizeof(*new(T)); size > 256 && flat(reflect.TypeFor[T]()) {
		return func(t *T) { clear(unsafe.Slice((*byte)(unsafe.Pointer(t)), size)) }
	}
	return func(t *T) { *t = *new(T) }
}

// Get returns an object that is new or cleared. It belongs to the caller until
// Put. It never blocks.
func (p *Pool[T]) Get() *T {
	if raceEnabled {
		return p.getBehind(math.MaxInt)
	}
	i := p.tier.enter()
	t := p.tier.take(i)
	p.tier.leave(i)
	if t == nil {
		return p.getBehind(i)
	}
	if asanEnabled {
		p.revive(t)
	}
	return t
}

// getBehind returns what local i does not have.
func (p *Pool[T]) getBehind(i int) *T {
	if i >= len(p.tier.locals) {
		p.tier.gets.add()
	}
	if p.make == nil {
		panic(useNew)
	}
	var t *T
	if !raceEnabled {
		t = p.tier.pop()
	}
	if t == nil {
		t, _ = p.free.Get().(*T)
	}
	if t != nil {
		if asanEnabled {
			p.revive(t)
		}
		return t
	}
	p.made.add()
	t = p.make()
	if p.debug != nil {
		p.debug.get(t)
	}
	return t
}

// revive makes t usable again: its own memory first, for the rest is found
// through it.
func (p *Pool[T]) revive(t *T) {
	unpoison(unsafe.Pointer(t), p.memory.self)
	p.owned(t, unbury)
}

// Put clears t and gives it to a later Get. It takes only what Get gave, and
// the caller must not look at t, nor at anything that t alone owned, from then
// on. Put of nil does nothing. An object that is never put is collected like
// any other, but Stats counts it as in use.
func (p *Pool[T]) Put(t *T) {
	if t == nil {
		return
	}
	if p.debug != nil {
		p.debug.put(t, p.clear)
		p.tier.puts.add()
		return
	}
	if p.clear == nil {
		panic(useNew)
	}
	p.clear(t)
	if checked && p.compare {
		p.mustBeCleared(t)
	}
	size := int(p.memory.self)
	if p.size != nil {
		size = p.size(t)
	}
	if size > p.maxSize {
		p.drop(t)
		return
	}
	if asanEnabled {
		p.owned(t, bury)
	}
	if raceEnabled {
		p.tier.puts.add()
		go p.handOver(t) // no order with the caller: that is the point
		return
	}
	i := p.tier.enter()
	kept := p.tier.keep(i, t, size)
	p.tier.leave(i)
	if !kept {
		p.putBehind(i, t, size)
	} else if !p.tier.timed.Load() {
		p.tier.watch()
	}
}

// putBehind takes what local i does not.
func (p *Pool[T]) putBehind(i int, t *T, size int) {
	if i >= len(p.tier.locals) {
		p.tier.puts.add()
	}
	if !p.tier.push(t, size) {
		p.free.Put(t)
	} else if !p.tier.timed.Load() {
		p.tier.watch()
	}
}

// drop leaves t to the collector. Checked builds still see to it that it is
// not used any more: being too large to keep is no excuse.
func (p *Pool[T]) drop(t *T) {
	p.dropped.add()
	if asanEnabled {
		p.owned(t, bury)
	}
	if raceEnabled {
		go p.scribble(t)
	}
}

// handOver is another goroutine's part of Put under -race. From here on nothing
// but t itself may order its last user before its next one. sync.Pool
// sees to that, so the tier stays empty.
func (p *Pool[T]) handOver(t *T) {
	p.scribble(t)
	p.free.Put(t)
}

// scribble writes all of t, which races with whatever still uses it.
func (p *Pool[T]) scribble(t *T) {
	runtime.Gosched() // the detector is surest of a write that comes second
	p.clear(t)
	p.owned(t, overwrite)
}

// Stats counts what a pool did.
type Stats struct {
	Gets    uint64
	Reused  uint64 // Gets answered with an object that was Put before
	Puts    uint64
	Dropped uint64 // Puts of objects that were too large
	InUse   int    // gotten and not put: at rest, those that leaked
	Held    int    // idle and held strongly
}

// ReuseRate is the true share of Gets that allocated nothing, 0 to 1; 0 before
// the first Get.
func (s Stats) ReuseRate() float64 {
	if s.Gets == 0 {
		return 0
	}
	return float64(s.Reused) / float64(s.Gets)
}

// Stats returns the counts so far, exact when no call is under way. Under -race
// the rate of reuse means little: the race detector drops returned objects on
// purpose.
func (p *Pool[T]) Stats() Stats {
	// Made first: read the other way round, a Get in between could make more
	// than there were Gets.
	made, dropped := p.made.load(), p.dropped.load()
	n := p.tier.tally()
	return Stats{
		Gets: n.gets, Reused: n.gets - made, Puts: n.puts + dropped, Dropped: dropped,
		InUse: max(0, int(n.gets)-int(n.puts+dropped)), Held: p.tier.held(),
	}
}

// Leaks returns the stack of every Get whose object has not been put. It is
// known with Config.Debug only.
func (p *Pool[T]) Leaks() []string {
	if p.debug == nil {
		return nil
	}
	return p.debug.leaks()
}
