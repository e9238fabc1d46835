package gate

import "math"

// stay is what is known of how long callers of one kind stay in the queue who tell no deadline. A
// wait that is longer is a wait for nobody.
type stay struct {
	after float64 // about the median of how long those had waited that left, in nanoseconds
	left  average // of the latest that had waited so long, the share that left
}

const (
	stayKnown  = 20   // callers that had waited so long, before they are evidence
	stayWeight = 0.05 // of one of them
	mostLeft   = 0.9  // of them: others end what they no longer need, as a hedge does
)

// leave enters a caller that left when it had waited so long.
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

// stayed enters a caller that has waited so long for its turn.
func (s *stay) stayed(waited float64) {
	if s.after > 0 && waited >= s.after {
		s.left.add(0, stayWeight)
	}
}

// most is how long callers stay, in nanoseconds; infinite while most of them stay longer than
// anybody has left after. It is at least the wait that hurts no caller: a crowd that sends and
// leaves at once must not take that from the others of its kind.
func (s *stay) most() float64 {
	if s.left.n < stayKnown || s.left.mean < mostLeft {
		return math.Inf(1)
	}
	return max(s.after, float64(burstLeast))
}
