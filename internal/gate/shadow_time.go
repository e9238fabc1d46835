package gate

import (
	"time"

	"github.com/spillway-go/spillway/limit"
)

// shape is the scatter of service times about their mean: the latest times that no queue
// lengthened.
type shape struct {
	of            [64]float64
	sum           float64
	n, last, next int
}

func (s *shape) add(x float64) {
	s.last = (s.last + 1) % len(s.of)
	s.n = min(s.n+1, len(s.of))
	s.sum += x - s.of[s.last]
	s.of[s.last] = x
}

// draw returns the stored values in turn, scaled to a mean of 1.
func (s *shape) draw() float64 {
	if s.n < len(s.of) || s.sum <= 0 {
		return 1
	}
	s.next = (s.next + 29) % len(s.of) // an odd step reaches all values, and neighbours not one after the other
	return s.of[s.next] * float64(s.n) / s.sum
}

// shadowEnd is a scheduled end of work in a shadow.
type shadowEnd struct {
	Grant
	at      time.Duration
	outcome limit.Outcome
}

// ends is a heap with the earliest end on top.
type ends []shadowEnd

func (h *ends) push(e shadowEnd) {
	*h = append(*h, e)
	q := *h
	i := len(q) - 1
	for i > 0 && q[(i-1)/2].at > e.at {
		q[i] = q[(i-1)/2]
		i = (i - 1) / 2
	}
	q[i] = e
}

func (h *ends) pop() shadowEnd {
	q := *h
	top, last := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	*h = q
	for i := 0; len(q) > 0; {
		child := 2*i + 1
		if child+1 < len(q) && q[child+1].at < q[child].at {
			child++
		}
		if child >= len(q) || q[child].at >= last.at {
			q[i] = last
			break
		}
		q[i] = q[child]
		i = child
	}
	return top
}
