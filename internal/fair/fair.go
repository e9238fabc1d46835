// Package fair says which callers have more than an equal part of the work of a
// service, over those that are active. Its memory is bounded.
package fair

import (
	"sync"
	"time"
)

const (
	// MaxCallers is how many callers are told apart. Further callers share the
	// entries of further.
	MaxCallers = 4096
	further    = 1024
	// lull is how long a caller without work stays active, at least; twice that at
	// most. A caller that sends one request after the other is not gone between them.
	lull = 5 * time.Second
)

// Shares counts the work of each active caller. It is safe for concurrent use. The
// zero value is ready.
type Shares struct {
	mu      sync.Mutex
	of      map[uint64]entry
	total   int // pieces of work of all callers
	round   uint32
	started time.Duration // of the round
}

type entry struct {
	load int    // pieces of work that wait or run
	seen uint32 // the round of the latest arrival or end
}

// Enter counts one more piece of work of a caller, at a time that does not go back,
// and reports whether the caller already has more than an equal part of what the
// service holds. That is limit pieces of work, or what is there if it is more: a
// queue is shared like what runs. A caller alone is never over its share, and neither is
// one with a single piece of work: where there are more callers than that, an equal part
// is less than one. The key that it returns is for Leave.
func (s *Shares) Enter(now time.Duration, caller uint64, limit int) (key uint64, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	e, known := s.of[caller]
	if !known && len(s.of) >= MaxCallers {
		caller %= further
		e = s.of[caller]
	}
	if s.of == nil {
		s.of = map[uint64]entry{}
	}
	e.load++
	e.seen = s.round
	s.of[caller] = e
	s.total++
	active := len(s.of)
	return caller, active > 1 && e.load > 1 && e.load*active > max(limit, s.total)
}

// Leave ends one piece of work of the caller with that key.
func (s *Shares) Leave(now time.Duration, key uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	e, ok := s.of[key]
	if !ok || e.load == 0 {
		return
	}
	e.load--
	e.seen = s.round
	s.of[key] = e
	s.total--
}

// advance forgets the callers without work that were last seen before the previous
// round.
func (s *Shares) advance(now time.Duration) {
	rounds := (now - s.started) / lull
	if rounds <= 0 {
		return
	}
	s.started += rounds * lull
	s.round += uint32(rounds)
	for key, e := range s.of {
		if e.load == 0 && e.seen+1 < s.round {
			delete(s.of, key)
		}
	}
}

// Active returns how many callers are told apart now.
func (s *Shares) Active() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.of)
}

// Hash returns a key for a caller's name, the same in every process for one seed.
func Hash(seed uint64, name string) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	h ^= seed * 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9 // and the end of splitmix64, so that every bit counts
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
