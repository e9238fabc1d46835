// Package fifo is a growable ring: a queue whose memory follows what waits in
// it, in both directions.
package fifo

// smallest is the least room kept; below it shrinking saves nothing.
const smallest = 16

// Queue is first in, first out. The zero value is empty and ready. It is not
// safe for concurrent use.
type Queue[T any] struct {
	ring []T
	head int
	n    int
}

// Len returns how many wait.
func (q *Queue[T]) Len() int { return q.n }

// Push adds v at the end.
func (q *Queue[T]) Push(v T) {
	if q.n == len(q.ring) {
		q.resize(max(2*q.n, smallest))
	}
	q.ring[(q.head+q.n)%len(q.ring)] = v
	q.n++
}

// Pop removes and returns the oldest. ok is false when nothing waits.
func (q *Queue[T]) Pop() (v T, ok bool) {
	if q.n == 0 {
		return v, false
	}
	var zero T
	v, q.ring[q.head] = q.ring[q.head], zero
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	if len(q.ring) > smallest && q.n <= len(q.ring)/8 {
		q.resize(len(q.ring) / 4)
	}
	return v, true
}

func (q *Queue[T]) resize(size int) {
	ring := make([]T, max(size, smallest))
	for i := range q.n {
		ring[i] = q.ring[(q.head+i)%len(q.ring)]
	}
	q.ring, q.head = ring, 0
}
