// Package fair says which callers use more than an equal part of a service, among the callers that are
// active. What a caller uses is the slots that its work holds, now and on average over the last seconds:
// work that takes a hundred times as long uses a hundred times as much, and work that waits for others
// uses nothing. Its memory is bounded.
package fair

import (
	"math"
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
	// Averages are exponential, with lull as their time constant.
	lull = 5 * time.Second
)

// Shares counts the work of each active caller. It is safe for concurrent use. The
// zero value is ready. Times that are passed to its methods do not go back, but for the little by
// which goroutines overtake one another.
type Shares struct {
	mu      sync.Mutex
	of      map[uint64]entry
	all     use // of all callers
	waiting int // pieces of work of all callers that wait
	waiters int // callers with work that waits
	round   uint32
	started time.Duration // of the round
}

type entry struct {
	use
	waiting, running int    // pieces of work
	seen             uint32 // the round of the latest arrival, start or end
}

// use is the slots that are held, and their average until at.
type use struct {
	held    int
	average float64
	at      time.Duration
}

// until brings the average up to date.
func (u *use) until(now time.Duration) {
	if now > u.at {
		past := math.Exp(-float64(now-u.at) / float64(lull))
		u.average, u.at = float64(u.held)+(u.average-float64(u.held))*past, now
	}
}

func (u *use) hold(now time.Duration, slots int) {
	u.until(now)
	u.held += slots
}

// total is what counts against a share: half of it is now, half the past.
func (u *use) total(now time.Duration) float64 {
	u.until(now)
	return u.average + float64(u.held)
}

// Ticket is one piece of work of a caller: it waits, then it runs, then it has left. The zero Ticket has
// left.
type Ticket struct {
	key    uint64
	slots  int // that the work takes
	pauses int // that have not ended
	state  state
}

type state uint8

const (
	left state = iota
	waits
	runs
)

// Enter counts one more piece of work of a caller, which waits until Start, and reports whether the
// caller already has more than its share. It has if it uses more than an equal part of what all use, or
// of limit, if that is more. It also has if others wait too and it has more than an equal part of the
// places where work waits, of which there are limit at least.
//
// A caller alone is never over its share, and neither is one without other work: where there are
// more callers than slots, an equal part is less than one. As long as nobody else waits, work that waits
// is never too much: who holds the slots is the reason for the wait.
func (s *Shares) Enter(now time.Duration, caller uint64, slots, limit int) (t Ticket, over bool) {
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
	others := e.waiting + e.running
	if e.waiting == 0 {
		s.waiters++
	}
	e.waiting++
	s.waiting++
	used, usedByAll := e.total(now), s.all.total(now)
	e.seen = s.round
	s.of[caller] = e
	if active := len(s.of); active > 1 && others > 0 {
		over = used*float64(active) > max(float64(limit), usedByAll) || e.waiting*s.waiters > max(limit, s.waiting)
	}
	return Ticket{key: caller, slots: min(max(slots, 1), max(limit, 1)), state: waits}, over
}

// Start records that waiting work has been admitted.
func (s *Shares) Start(now time.Duration, t *Ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.state != waits {
		return
	}
	t.state = runs
	s.advance(now)
	e := s.of[t.key]
	s.waited(&e)
	e.running++
	e.hold(now, t.slots)
	s.all.hold(now, t.slots)
	e.seen = s.round
	s.of[t.key] = e
}

// Leave ends a piece of work, or records that it holds no slots any more. To leave twice does nothing.
func (s *Shares) Leave(now time.Duration, t *Ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := t.state
	if t.state = left; was == left {
		return
	}
	s.advance(now)
	e := s.of[t.key]
	if was == waits {
		s.waited(&e)
	} else if e.running--; t.pauses == 0 {
		e.hold(now, -t.slots)
		s.all.hold(now, -t.slots)
	}
	e.seen = s.round
	s.of[t.key] = e
}

// Pause records that running work uses nothing until Resume, because others may have its slots. Pauses nest.
func (s *Shares) Pause(now time.Duration, t *Ticket) { s.pause(now, t, 1) }

// Resume ends a Pause.
func (s *Shares) Resume(now time.Duration, t *Ticket) { s.pause(now, t, -1) }

func (s *Shares) pause(now time.Duration, t *Ticket, pauses int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.state != runs {
		return
	}
	if t.pauses += pauses; t.pauses == max(pauses, 0) { // the first begins, or the last ends
		e := s.of[t.key]
		e.hold(now, -pauses*t.slots)
		s.all.hold(now, -pauses*t.slots)
		s.of[t.key] = e
	}
}

// waited ends the wait of one piece of work of e.
func (s *Shares) waited(e *entry) {
	s.waiting--
	if e.waiting--; e.waiting == 0 {
		s.waiters--
	}
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
	s.all.until(now)
	for key, e := range s.of {
		if e.waiting+e.running == 0 && e.seen+1 < s.round {
			e.until(s.all.at)
			s.all.average = max(s.all.average-e.average, 0)
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

// Hash returns a key for a caller's name, the same in every process.
func Hash(name string) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9 // and the end of splitmix64, so that every bit counts
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
