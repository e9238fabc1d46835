package gate

import (
	"math"

	"github.com/spillway-go/spillway/limit"
)

// stay is the evidence about how long callers of one kind without a deadline stay, from the arrival
// to the end of the work. Work that ends later is useless.
type stay struct {
	after float64 // approximate median time after which callers left, in nanoseconds
	left  average // share of callers that left, among recent callers that left or stayed for after
}

const (
	stayKnown    = 20   // callers before the share that left is evidence
	stayWeight   = 0.05 // weight of one caller
	nearlyStayed = 0.95 // part of the time for which callers stay, after which one that left has stayed as long
	mostLeft     = 0.9  // least share that left for evidence: some callers always leave early, such as a hedge that lost
)

// leave records a caller that left after stayed nanoseconds.
func (s *stay) leave(stayed float64) {
	switch {
	case s.after == 0:
		s.after = stayed
	case stayed < s.after:
		s.after = max(s.after-stayWeight*s.after, stayed)
	default:
		s.after = min(s.after+stayWeight*s.after, stayed)
	}
	s.left.add(1, stayWeight)
}

// end records the end of work whose caller had stayed for stayed nanoseconds, and returns its outcome. A
// caller that left after as long as callers stay has left as if by a deadline.
func (s *stay) end(stayed float64, o limit.Outcome) limit.Outcome {
	switch {
	case o == limit.Canceled:
		s.leave(stayed)
		if stayed >= nearlyStayed*s.most() {
			return limit.Deadline
		}
	case s.after > 0 && stayed >= s.after:
		s.left.add(0, stayWeight)
	}
	return o
}

// most is how long callers stay, in nanoseconds. It is infinite without enough evidence, and while
// too few callers leave. It is at least a wait that hurts no caller: a crowd that sends and leaves
// at once must not take that wait from other callers of its kind.
func (s *stay) most() float64 {
	if s.left.n < stayKnown || s.left.mean < mostLeft {
		return math.Inf(1)
	}
	return max(s.after, float64(burstLeast))
}
