// Package objectpool reuses objects and never hands one out uncleared.
//
// Do not pool by habit. Reuse pays from about 64 KB up, where an allocation means clearing fresh
// memory and collecting it. Below 64 KB, the gain is too small to matter unless your profile shows
// otherwise.
//
// # What is kept
//
// The pool holds returned objects strongly: as many as were in use at the same time in the last
// minute or so, up to Config.MaxIdleBytes. Objects beyond go to a sync.Pool, which garbage collections
// empty. A load that comes in bursts thus finds its objects again. An idle pool gives
// its objects up by a timer, not by a goroutine: every ten seconds, half of the objects that were
// not needed. A garbage collection then frees their memory. [Buffers] keeps byte buffers by size.
//
// # Finding misuse
//
// With a pool, Go code can use an object after it has given the object up. Build tests with -race,
// or with -asan if cgo is available. Under -race, Put hands every object to another goroutine,
// which overwrites the object; under -asan, Put poisons its memory. Either way, code that still
// uses the object is reported, and Put panics if Clear forgot a field. Neither check costs a normal
// build anything. Config.Debug finds misuse that only bookkeeping can find: objects of another
// origin, and objects that were never put.
//
// # Cost
//
// A steady loop of Get and Put allocates nothing (go test ./objectpool -run Alloc). The command
// "spillway lab reuse" compares the pool with sync.Pool, a channel and no reuse.
//
// # Pitfalls
//
//   - Never pool an object that other code may still hold: a context or an object that holds one,
//     an object that a goroutine started by its user can see, a response that is still being
//     written, an object meant for a caller that has already left.
//   - A string cannot be cleared, only dropped: data that must not outlive its request belongs in a
//     byte slice, or in a [Buffer].
//
// # When not to use it
//
// Objects below 64 KB need no pool. For larger objects that hold no data of a user, sync.Pool
// itself is enough.
package objectpool

import (
	"math"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Config sets how objects are made and cleared.
type Config[T any] struct {
	// New makes an object when there is none to reuse. Nil means new(T).
	New func() *T

	// Clear makes an object indistinguishable from a new one, except for memory worth keeping, such
	// as the capacity of its slices. Clear must also clear the memory behind those slices, up to
	// their capacity. Nil means *t = zero. Clear must tolerate a second call.
	Clear func(*T)

	// KeepsState declares that an object keeps something from use to use on purpose, such as a
	// counter. Builds with -race or -asan then do not compare cleared objects with new ones.
	KeepsState bool

	// MaxIdleBytes bounds the bytes of idle objects held strongly. All processors share three
	// quarters of the bytes; the rest is for the objects that each processor keeps. Zero means
	// 256 MiB; a negative MaxIdleBytes holds no object.
	MaxIdleBytes int

	// MaxSize is the size in bytes above which Put drops an object, so that one outlier is not kept
	// forever. Zero means 16 MiB.
	MaxSize int

	// Size returns how many bytes a cleared object holds. Nil counts the bytes of a T and behind
	// its slices, but not behind pointers and maps.
	Size func(*T) int

	// Debug finds misuse at the price of reuse; it is for tests. A double Put, a Put of an object
	// that Get never returned, and a change after Put panic. Leaks reports objects that were not
	// put. Debug never hands out a returned object again, and keeps every object that it has seen.
	Debug bool
}

const (
	defaultIdleBytes = 256 << 20
	defaultMaxSize   = 16 << 20
)

const useNew = "objectpool: this Pool was not made: use New"

// Pool hands out cleared objects. It is safe for concurrent use. Create a Pool with New: without
// New, Get and Put panic. A Pool must not be copied.
type Pool[T any] struct {
	make    func() *T
	clear   func(*T)
	size    func(*T) int // nil: all objects have one size
	memory  memory[T]
	maxSize int
	debug   *ledger[T]
	compare bool

	tier tier[T]
	free sync.Pool // of *T; holds objects that the tier does not keep

	created, dropped counter
	samples          samples[T] // used in checked builds only
}

// New returns an empty pool. It starts no goroutine and no timer.
func New[T any](cfg Config[T]) *Pool[T] {
	budget := cfg.MaxIdleBytes
	if budget == 0 {
		budget = defaultIdleBytes
	}
	var left atomic.Int64
	left.Store(toShare(budget))
	return newPool(cfg, budget, &left)
}

// newPool returns a pool. left is the unused part of the budget, which other pools may share.
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

// zero returns a function that zeroes a T. It uses a faster way if a T is large and has no pointers.
func zero[T any]() func(*T) {
	if size := unsafe.Sizeof(*new(T)); size > 256 && flat(reflect.TypeFor[T]()) {
		return func(t *T) { clear(unsafe.Slice((*byte)(unsafe.Pointer(t)), size)) }
	}
	return func(t *T) { *t = *new(T) }
}

// Get returns a new or cleared object, which belongs to the caller until Put. Get never blocks.
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

// getBehind returns an object when local i has none.
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
	p.created.add()
	t = p.make()
	if p.debug != nil {
		p.debug.get(t)
	}
	return t
}

// revive makes t usable again: its own memory first, because the slices are found through it.
func (p *Pool[T]) revive(t *T) {
	unpoison(unsafe.Pointer(t), p.memory.self)
	p.owned(t, unbury)
}

// Put clears t and gives it to a later Get. t must come from Get of the same pool. After Put, the
// caller must not use t, nor anything that t alone owned. Put of nil does nothing. An object that
// is never put is collected like any other, but Stats counts it as in use.
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
		go p.handOver(t) // what the caller does from now on races with handOver
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

// putBehind stores an object that local i does not keep.
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

// drop leaves t to the garbage collector. Checked builds still detect later use of t, although t is
// too large to keep.
func (p *Pool[T]) drop(t *T) {
	p.dropped.add()
	if asanEnabled {
		p.owned(t, bury)
	}
	if raceEnabled {
		go p.scribble(t)
	}
}

// handOver is the part of Put that runs on another goroutine under -race. The last user of t may be
// ordered before its next user only by the hand-over of t itself, because any other order could hide
// a race. sync.Pool adds no other order, but the tier's lock would, so the tier stays empty.
func (p *Pool[T]) handOver(t *T) {
	p.scribble(t)
	p.free.Put(t)
}

// scribble writes all of t. The write races with any code that still uses t.
func (p *Pool[T]) scribble(t *T) {
	runtime.Gosched() // the race detector finds a write most reliably if the write comes second
	p.clear(t)
	p.owned(t, overwrite)
}

// Stats counts the operations of a pool.
type Stats struct {
	Gets    uint64
	Reused  uint64 // Gets answered with an object that was Put before
	Dropped uint64 // calls of Put with objects that were too large
	InUse   int    // objects that Get returned and that were not put; in an unused pool, the leaked ones
	Held    int    // idle objects held strongly
}

// Stats returns the counts so far. They are exact when no call is under way. Under -race the rate of
// reuse means little, because sync.Pool then drops some objects on purpose.
func (p *Pool[T]) Stats() Stats {
	// Read made first: in the other order, a Get in between could make more objects than there were
	// Gets.
	created, dropped := p.created.load(), p.dropped.load()
	n := p.tier.tally()
	return Stats{
		Gets: n.gets, Reused: n.gets - created, Dropped: dropped,
		InUse: max(0, int(n.gets)-int(n.puts+dropped)), Held: p.tier.held(),
	}
}

// Leaks returns the stack of every Get whose object has not been put. Without Config.Debug, Leaks
// returns nil.
func (p *Pool[T]) Leaks() []string {
	if p.debug == nil {
		return nil
	}
	return p.debug.leaks()
}
