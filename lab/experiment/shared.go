package experiment

import "sync"

// Shared is one measurement that gives several cells their figures: the first cell
// that needs it in a repeat makes it, the others wait for it. The zero value is ready.
type Shared[T any] struct {
	mu   sync.Mutex
	once map[int]func() (T, error) // by repeat
}

// Of returns the result of that repeat's measurement.
func (s *Shared[T]) Of(repeat int, measure func() (T, error)) (T, error) {
	s.mu.Lock()
	if s.once == nil {
		s.once = map[int]func() (T, error){}
	}
	once, ok := s.once[repeat]
	if !ok {
		once = sync.OnceValues(measure)
		s.once[repeat] = once
	}
	s.mu.Unlock()
	return once()
}
