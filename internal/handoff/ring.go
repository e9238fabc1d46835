package handoff

import "sort"

// ring is the queue of one level, first come, first served. A job taken from the middle leaves a
// hole. The hole keeps its slot until it is first or the slots run out.
type ring[T any] struct {
	head  uint64    // the position of the first slot in use
	tail  uint64    // position behind the last slot in use
	seq   uint64    // number of the latest job
	holes int       // among the slots in use
	slots []slot[T] // a power of two, or none
}

type slot[T any] struct {
	value T
	seq   uint64 // rises from head to tail
	hole  bool
}

// firstSlots is how many slots a ring begins with.
const firstSlots = 64

func (r *ring[T]) at(pos uint64) *slot[T] { return &r.slots[pos&uint64(len(r.slots)-1)] }

// len is how many jobs there are.
func (r *ring[T]) len() int { return int(r.tail-r.head) - r.holes }

// push appends *v and returns its number.
func (r *ring[T]) push(v *T) uint64 {
	if r.tail-r.head == uint64(len(r.slots)) {
		r.grow()
	}
	s := r.at(r.tail)
	r.tail++
	r.seq++
	s.value, s.seq = *v, r.seq
	return r.seq
}

// pop moves the first job to *v. The ring must have a job.
func (r *ring[T]) pop(v *T) {
	for r.holes > 0 && r.at(r.head).hole {
		r.at(r.head).hole = false
		r.head++
		r.holes--
	}
	var none T
	s := r.at(r.head)
	*v, s.value = s.value, none
	r.head++
}

// remove takes out the job with the given number, if the ring has it.
func (r *ring[T]) remove(seq uint64) bool {
	pos := r.head + uint64(sort.Search(int(r.tail-r.head), func(i int) bool { return r.at(r.head+uint64(i)).seq >= seq }))
	if pos == r.tail || r.at(pos).seq != seq || r.at(pos).hole {
		return false
	}
	r.cut(r.at(pos))
	return true
}

func (r *ring[T]) cut(s *slot[T]) {
	var none T
	s.value, s.hole = none, true
	r.holes++
}

// purge takes out the jobs for which dead returns true.
func (r *ring[T]) purge(dead func(*T) bool) (all []T) {
	for pos := r.head; pos < r.tail; pos++ {
		if s := r.at(pos); !s.hole && dead(&s.value) {
			all = append(all, s.value)
			r.cut(s)
		}
	}
	return all
}

// grow makes free slots: it drops the holes, and doubles the slots if over half hold jobs.
func (r *ring[T]) grow() {
	size := max(len(r.slots), firstSlots)
	if r.len() > size/2 {
		size *= 2
	}
	kept := make([]slot[T], 0, size)
	for pos := r.head; pos < r.tail; pos++ {
		if s := r.at(pos); !s.hole {
			kept = append(kept, *s)
		}
	}
	r.head, r.tail, r.holes, r.slots = 0, uint64(len(kept)), 0, kept[:size]
}

// shrink frees the slots of a ring without jobs.
func (r *ring[T]) shrink() { r.head, r.tail, r.holes, r.slots = 0, 0, 0, nil }
