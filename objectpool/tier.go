package objectpool

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

const (
	// window is how often a tier that holds objects gives up half of those that
	// were not needed since the last time.
	window = 10 * time.Second

	// A processor keeps one object, and further ones up to localCount if they are
	// of at most localSize bytes, where no other processor finds them. The first
	// ones of all processors together hold at most 1/localShare of the budget,
	// the further ones less.
	localCount = 8
	localSize  = 4 << 10
	localShare = 8
)

// tier holds idle objects strongly: no collection takes them. An object is made
// only when none is idle, so together with those in use they are as many as
// were once in use at the same time, and a few for each processor. Of what a
// window leaves untouched, which the recent peak did not need, half goes; after
// six idle windows 1/32 is left.
//
// It has no goroutine. While it holds anything a timer is set, one per window,
// which knows the tier by a weak pointer only.
type tier[T any] struct {
	locals []local[T]
	small  int         // bytes; a local keeps further objects up to here
	large  int         // bytes; a local keeps one object up to here
	timed  atomic.Bool // a timer is set

	gets, puts counter // by whom there is no local for

	mu     sync.Mutex
	shared []idle[T]     // the longest idle first
	left   *atomic.Int64 // bytes that shared may still hold, of all tiers of a budget
	low    int           // least len(shared) in this window
	seen   tally         // was the tally when the window began
}

// local is what one processor did and keeps.
type local[T any] struct {
	claim //lint:ignore U1000 a lock in pin_portable.go
	tally
	stack atomic.Pointer[stack[T]] // replaced to drop what is in it

	_ [128 - 32]byte // at least a cache line apart
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

// init makes an empty tier with a budget that it may share with others.
func (t *tier[T]) init(budget int, left *atomic.Int64) {
	// GOMAXPROCS may grow. Beyond this, processors use what all share.
	n := max(runtime.GOMAXPROCS(0), runtime.NumCPU())
	t.locals, t.left = make([]local[T], n), left
	t.large = budget / localShare / n
	t.small = min(localSize, t.large/localCount)
	t.empty()
}

// toShare is what locals leave of a budget: one keeps less than twice t.large.
func toShare(budget int) int64 { return int64(max(budget-budget/(localShare/2), 0)) }

// empty drops what the locals keep. A goroutine that is at one of them just now may
// still take an object from there, or leave one there to the collector.
func (t *tier[T]) empty() {
	for i := range t.locals {
		t.locals[i].stack.Store(new(stack[T]))
	}
}

// take takes the object that local i kept last; nil if it has none. The caller
// has entered.
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

// keep lets local i keep an object and says whether it did. The caller has
// entered.
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

// pop takes from what all share the one that was used last.
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

// push lets all share an object and says whether the budget allowed it.
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

// watch sets the timer unless it is set. The one that adds an object calls it then,
// if timed says that it has to.
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
		if t.held() > 0 { // a goroutine that put something and saw true did so before this
			t.watch()
		}
	})
}

// trim ends a window.
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
	// A new slice, for the old one may be as long as the highest peak ever.
	t.shared = append([]idle[T](nil), t.shared[n:]...)
	t.low, t.seen = len(t.shared), now
}

// held is how many objects are idle.
func (t *tier[T]) held() int {
	t.mu.Lock()
	n := len(t.shared)
	t.mu.Unlock()
	for i := range t.locals {
		t.look(i, func() {
			s := t.locals[i].stack.Load()
			n += s.n
			if s.top != nil {
				n++
			}
		})
	}
	return n
}

// tally is what happened so far.
func (t *tier[T]) tally() tally {
	sum := tally{t.gets.load(), t.puts.load()}
	for i := range t.locals {
		t.look(i, func() {
			sum.gets += t.locals[i].gets
			sum.puts += t.locals[i].puts
		})
	}
	return sum
}
