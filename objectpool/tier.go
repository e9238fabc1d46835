package objectpool

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

const (
	// window is the interval at which a tier gives up half of the objects that were not needed in
	// the last interval.
	window = 10 * time.Second

	// A processor keeps one object, and further objects of at most localSize bytes, up to
	// localCount objects in all. No other processor finds these objects. The first objects of all
	// processors together hold at most 1/localShare of the budget. The further objects hold less.
	localCount = 8
	localSize  = 4 << 10
	localShare = 8
)

// tier holds idle objects strongly: no garbage collection takes them. An object is made only when
// none is idle. So idle objects and objects in use together are as many as were once in use at the
// same time, plus a few for each processor. At the end of a window, the tier gives up half of the
// objects that were not used in the window, because the recent peak did not need them. After six
// idle windows 1/32 is left.
//
// A tier has no goroutine. While a tier holds objects, it sets one timer per window. The timer has
// only a weak pointer to the tier.
type tier[T any] struct {
	locals []local[T]
	small  int         // maximum bytes of a further object in a local
	large  int         // maximum bytes of the first object in a local
	timed  atomic.Bool // a timer is set

	gets, puts counter // calls on processors without a local

	mu     sync.Mutex
	shared []idle[T]     // the longest idle first
	left   *atomic.Int64 // bytes that the shared objects of all tiers of a budget may still take
	low    int           // smallest len(shared) in this window
	seen   tally         // the tally when the window began
}

// local holds the counts and the idle objects of one processor.
type local[T any] struct {
	claim //lint:ignore U1000 a lock in pin_portable.go
	tally
	stack atomic.Pointer[stack[T]] // replaced to drop its objects

	_ [128 - 32]byte // keeps locals at least a cache line apart
}

type stack[T any] struct {
	top  *T
	n    int
	more [localCount - 1]*T
	_    [128 - 8 - 8 - 8*(localCount-1)]byte
}

func (s *stack[T]) pop() *T {
	if s.n == 0 {
		return nil
	}
	s.n--
	x := s.more[s.n]
	s.more[s.n] = nil
	return x
}

func (s *stack[T]) push(x *T) bool {
	if s.n == len(s.more) {
		return false
	}
	s.more[s.n] = x
	s.n++
	return true
}

type tally struct{ gets, puts uint64 }

// idle is an object out of use, and its size in bytes.
type idle[T any] struct {
	object *T
	size   int
}

// init makes an empty tier with a budget that other tiers may share.
func (t *tier[T]) init(budget int, left *atomic.Int64) {
	// GOMAXPROCS may grow. Processors beyond n use the shared objects.
	n := max(runtime.GOMAXPROCS(0), runtime.NumCPU())
	t.locals, t.left = make([]local[T], n), left
	t.large = budget / localShare / n
	t.small = min(localSize, t.large/localCount)
	t.empty()
}

// toShare returns the part of a budget that the locals leave: a local keeps less than twice
// t.large.
func toShare(budget int) int64 { return int64(max(budget-budget/(localShare/2), 0)) }

// empty drops the objects of the locals. A goroutine that uses a local at the same time may still
// take an object from the dropped stack, or leave one there to the garbage collector.
func (t *tier[T]) empty() {
	for i := range t.locals {
		t.locals[i].stack.Store(new(stack[T]))
	}
}

// take takes an object that local i keeps, and returns nil if the local keeps none. The caller has
// called enter.
func (t *tier[T]) take(i int) *T {
	if uint(i) >= uint(len(t.locals)) {
		return nil
	}
	l := &t.locals[i]
	l.gets++
	s := l.stack.Load()
	if x := s.top; x != nil {
		s.top = nil
		return x
	}
	return s.pop()
}

// keep makes local i keep an object, and reports whether the local had room. The caller has called
// enter.
func (t *tier[T]) keep(i int, x *T, size int) bool {
	if uint(i) >= uint(len(t.locals)) {
		return false
	}
	l := &t.locals[i]
	l.puts++
	s := l.stack.Load()
	if s.top == nil && size <= t.large {
		s.top = x
		return true
	}
	return size <= t.small && s.push(x)
}

// pop takes the shared object that was used last.
func (t *tier[T]) pop() *T {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := len(t.shared) - 1
	if last < 0 {
		return nil
	}
	x := t.shared[last]
	t.shared[last] = idle[T]{}
	t.shared = t.shared[:last]
	t.low = min(t.low, last)
	t.left.Add(int64(x.size))
	return x.object
}

// push adds an object to the shared ones, and reports whether the budget allowed it.
func (t *tier[T]) push(x *T, size int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left.Add(-int64(size)) < 0 {
		t.left.Add(int64(size))
		return false
	}
	t.shared = append(t.shared, idle[T]{x, size})
	return true
}

// watch sets the timer unless it is set. A goroutine that has added an object calls watch if timed
// is false.
func (t *tier[T]) watch() {
	if !t.timed.CompareAndSwap(false, true) {
		return
	}
	ref := weak.Make(t)
	time.AfterFunc(window, func() {
		t := ref.Value()
		if t == nil {
			return
		}
		t.trim()
		t.timed.Store(false)
		if t.held() > 0 { // finds each object that was put while timed was true
			t.watch()
		}
	})
}

// trim ends a window and gives up objects that the window did not need.
func (t *tier[T]) trim() {
	now := t.tally()
	t.mu.Lock()
	defer t.mu.Unlock()
	if now == t.seen {
		t.empty()
	}
	n := (t.low + 1) / 2
	for _, x := range t.shared[:n] {
		t.left.Add(int64(x.size))
	}
	// Make a new slice, because the old one may be as long as the highest peak ever.
	t.shared = append([]idle[T](nil), t.shared[n:]...)
	t.low, t.seen = len(t.shared), now
}

// held returns how many objects are idle.
func (t *tier[T]) held() int {
	t.mu.Lock()
	n := len(t.shared)
	t.mu.Unlock()
	for i := range t.locals {
		t.inspect(i, func() {
			s := t.locals[i].stack.Load()
			n += s.n
			if s.top != nil {
				n++
			}
		})
	}
	return n
}

// tally returns the counts so far.
func (t *tier[T]) tally() tally {
	sum := tally{t.gets.load(), t.puts.load()}
	for i := range t.locals {
		t.inspect(i, func() {
			sum.gets += t.locals[i].gets
			sum.puts += t.locals[i].puts
		})
	}
	return sum
}
