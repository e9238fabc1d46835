package gate

import "math"

// stay is the evidence about how long callers of one kind without a deadline stay in the queue. A
// longer wait is useless.
type stay struct {
	after float64 // approximate median wait of the callers that left, in nanoseconds
	left  average // share of callers that left, among recent callers that left or waited for after
}

const (
	stayKnown  = 20   // callers before the share that left is evidence
	stayWeight = 0.05 // weight of one caller
	mostLeft   = 0.9  // least share that left for evidence: some callers always leave early, such as a hedge that lost
)

// leave records a caller that left after waiting for waited nanoseconds.
func (s *stay) leave(waited float64) {
	switch {
	case s.after == 0:
		s.after = waited
	case waited < s.after:
		s.after = max(s.after-stayWeight*s.after, waited)
	default:
		s.after = min(s.after+stayWeight*s.after, waited)
	}
	s.left.add(1, stayWeight)
}

// stayed records a caller that waited for waited nanoseconds until its turn.
func (s *stay) stayed(waited float64) {
	if s.after > 0 && waited >= s.after {
		s.left.add(0, stayWeight)
	}
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
