// Package ring is a first-in first-out queue for many producers and many
// consumers that takes no lock to push or to pop.
//
// A slot's sequence number says whose turn it is (Dmitry Vyukov's bounded MPMC
// queue): a producer claims a position by a compare-and-swap, writes the value
// and then publishes it. The slots are a segment that grows by being replaced
// with a larger one (as in Nikolaev's LSCQ), so a queue that may become long
// takes memory only when it does, and positions count on through all segments:
// the length is a difference of two of them.
//
// A producer that loses its processor between claiming and publishing holds up
// what was pushed behind it; until then Pop may report an empty queue.
package ring

import (
	"sync"
	"sync/atomic"
)

const (
	// first is how many slots a new ring has.
	first = 64
	// closed marks the tail of a segment that takes no more.
	closed = 1 << 63
	// line keeps what producers write apart from what consumers write: two cache
	// lines, because processors fetch them in pairs.
	line = 128
)

// Ring is the queue. The zero value is empty and takes no memory; a Ring must not
// be copied.
type Ring[T any] struct {
	tail atomic.Pointer[segment[T]] // takes pushes
	head atomic.Pointer[segment[T]] // gives pops; the same one unless it was just replaced
	mu   sync.Mutex                 // held to replace the tail segment
	shut atomic.Bool
	era  atomic.Uint64

	aside atomic.Int64 // values that were set aside
}

// segment is a circle of slots.
type segment[T any] struct {
	slots []slot[T] // a power of two
	era   uint64    // of the ring when it was made
	next  atomic.Pointer[segment[T]]
	_     [line]byte
	tail  atomic.Uint64 // the position of the next push
	seen  atomic.Uint64 // a position that the head has reached: spares producers the consumers' line
	_     [line]byte
	head  atomic.Uint64 // the position of the next pop
	_     [line]byte
}

type slot[T any] struct {
	seq   atomic.Uint64 // free for the push at this position, or filled when one above
	value T
}

// start makes the first segment.
func (r *Ring[T]) start() *segment[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tail.Load() == nil {
		s := newSegment[T](first, 0, 0)
		s.era = r.era.Load()
		if r.shut.Load() {
			s.tail.Store(closed)
		}
		r.head.Store(s)
		r.tail.Store(s)
	}
	return r.tail.Load()
}

func newSegment[T any](size int, start, seen uint64) *segment[T] {
	s := &segment[T]{slots: make([]slot[T], size)}
	for i := range uint64(size) {
		s.slots[(start+i)%uint64(size)].seq.Store(start + i)
	}
	s.tail.Store(start)
	s.head.Store(start)
	s.seen.Store(seen)
	return s
}

// Push appends v unless the ring is closed or holds limit values already, those
// included that were set aside. The limit is exact, whoever else pushes and pops.
func (r *Ring[T]) Push(v T, limit int) bool { return r.PushIn(r.Era(), v, limit) }

// Era is a number that NewEra changes.
func (r *Ring[T]) Era() uint64 { return r.era.Load() }

// NewEra makes every later PushIn of an earlier era fail, and every one under way
// that has no place yet.
func (r *Ring[T]) NewEra() {
	r.mu.Lock()
	r.era.Add(1)
	s := r.tail.Load()
	r.mu.Unlock()
	if s != nil {
		r.replace(s, false)
	}
}

// PushIn is Push for a limit that holds in one era only.
func (r *Ring[T]) PushIn(era uint64, v T, limit int) bool {
	for {
		s := r.tail.Load()
		if s == nil {
			s = r.start()
		}
		if s.era != era {
			if r.Era() != era || r.shut.Load() {
				return false
			}
			r.replace(s, false) // as NewEra is about to do
			continue
		}
		pos := s.tail.Load()
		if pos >= closed {
			if r.shut.Load() {
				return false
			}
			r.replace(s, true) // somebody does: waits for it
			continue
		}
		// What is popped meanwhile only lowers the length, and the swap below
		// fails if anything is pushed. What is set aside is counted there before
		// it is missing here, so here is read first.
		if int64(pos-s.seen.Load())+r.aside.Load() >= int64(limit) && r.full(s, pos, limit) {
			return false
		}
		at := &s.slots[pos&uint64(len(s.slots)-1)]
		switch seq := at.seq.Load(); {
		case seq == pos:
			if s.tail.CompareAndSwap(pos, pos+1) {
				at.value = v
				at.seq.Store(pos + 1)
				return true
			}
		case seq < pos: // a value of the last round is still there
			r.replace(s, true)
		}
	}
}

// full reports whether a push at pos would exceed the limit, by where the head
// is now.
func (r *Ring[T]) full(s *segment[T], pos uint64, limit int) bool {
	head := r.Popped()
	if int64(pos-head)+r.aside.Load() >= int64(limit) {
		return true
	}
	s.seen.Store(head)
	return false
}

// Full reports whether the ring holds limit values or more, those included that
// were set aside. It may miss that while values are set aside or released, but
// never says so of a ring that had room all the time.
func (r *Ring[T]) Full(limit int) bool {
	s := r.tail.Load()
	if s == nil {
		return limit <= 0
	}
	aside := r.aside.Load()
	here := int64(limit) - aside
	pos := s.tail.Load() &^ closed
	return int64(pos-s.seen.Load()) >= here && int64(pos-r.Popped()) >= here && r.aside.Load() == aside
}

// Pop moves the oldest value to *v. If there is none it returns false and leaves
// *v alone.
func (r *Ring[T]) Pop(v *T) bool {
	for {
		s := r.head.Load()
		if s == nil {
			return false
		}
		pos := s.head.Load()
		at := &s.slots[pos&uint64(len(s.slots)-1)]
		switch seq := at.seq.Load(); {
		case seq == pos+1:
			if s.head.CompareAndSwap(pos, pos+1) {
				var none T
				*v, at.value = at.value, none
				at.seq.Store(pos + uint64(len(s.slots)))
				return true
			}
		case seq <= pos: // not pushed yet, at least not here
			if s.tail.Load() != pos|closed || !r.advance(s) {
				return false
			}
		}
	}
}

// SetAside is Pop for a value that keeps its place: it counts towards every limit
// until Release. A Push meanwhile may find the ring full with one value less.
func (r *Ring[T]) SetAside(v *T) bool {
	r.aside.Add(1)
	ok := r.Pop(v)
	if !ok {
		r.aside.Add(-1)
	}
	return ok
}

// Release gives the places of n values back that were set aside.
func (r *Ring[T]) Release(n int) { r.aside.Add(int64(-n)) }

// advance leaves a segment that is closed and empty for the next one, if there
// is one.
func (r *Ring[T]) advance(s *segment[T]) bool {
	next := s.next.Load()
	if next == nil {
		return false
	}
	r.head.CompareAndSwap(s, next)
	return true
}

// replace puts a new segment behind s: twice as large if s is full, small again
// otherwise.
func (r *Ring[T]) replace(s *segment[T], full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tail.Load() != s || r.shut.Load() {
		return
	}
	size := first
	if full {
		size = len(s.slots)
		// Otherwise one consumer that lost its processor is in the way.
		if r.Len() >= size/2 {
			size *= 2
		}
	}
	end := s.tail.Or(closed)
	next := newSegment[T](size, end, r.Popped())
	next.era = r.era.Load()
	s.next.Store(next)
	r.tail.Store(next)
}

// Shrink gives memory back that a long queue left behind. It does nothing while
// the ring holds values.
func (r *Ring[T]) Shrink() {
	s := r.tail.Load()
	if s == nil || len(s.slots) == first || r.Len() > 0 {
		return
	}
	r.replace(s, false)
	if s.head.Load()|closed == s.tail.Load() && r.head.Load() == s {
		r.advance(s)
	}
}

// Close makes every later Push fail. What is in the ring stays there for Pop.
func (r *Ring[T]) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shut.Store(true)
	if s := r.tail.Load(); s != nil {
		s.tail.Or(closed)
	}
}

// Pushed is how many values were ever pushed, those included whose Push is about
// to return.
func (r *Ring[T]) Pushed() uint64 {
	s := r.tail.Load()
	if s == nil {
		return 0
	}
	return s.tail.Load() &^ closed
}

// Popped is how many values were ever popped.
func (r *Ring[T]) Popped() uint64 {
	s := r.head.Load()
	if s == nil {
		return 0
	}
	return s.head.Load()
}

// Aside is how many values are set aside.
func (r *Ring[T]) Aside() int { return int(r.aside.Load()) }

// Held is Len and what was set aside.
func (r *Ring[T]) Held() int {
	n := r.Len()
	return n + int(r.aside.Load())
}

// Len is how many values can be popped: exact when nobody pushes or pops
// meanwhile, never negative.
func (r *Ring[T]) Len() int {
	head := r.Popped() // first: then the tail cannot be behind it
	return int(r.Pushed() - head)
}
