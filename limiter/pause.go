package limiter

import (
	"sync/atomic"
	"time"
)

// state is the generation of a slot, and the pauses of the work that has the slot:
//
//	generation << 16 | given << 15 | number of pauses that have not ended
//
// One word, so that a pause never reaches the next work in the slot.
type state struct{ word atomic.Uint64 }

const (
	generationShift = 16
	given           = 1 << 15 // the slots of the paused work were given to others
	mostPauses      = given - 1
)

func (s *state) generation() uint64 { return s.word.Load() >> generationShift }

// end ends a generation, with its pauses. ok reports whether the generation has not ended before, and
// paused whether a pause ended with the generation.
func (s *state) end(generation uint64) (paused, ok bool) {
	for {
		w := s.word.Load()
		if w>>generationShift != generation {
			return false, false
		}
		if s.word.CompareAndSwap(w, (generation+1)<<generationShift) {
			return w&mostPauses != 0, true
		}
	}
}

// away is the time of all past pauses of work, in nanoseconds, behind the low bits of the generation:
//
//	generation << 48 | time
//
// A Resume adds its pause after it has changed the state. The work may have ended between, and the
// next work in the slot gets nothing of that pause.
type away struct{ word atomic.Uint64 }

const (
	awayBits = 48
	mostAway = 1<<awayBits - 1 // more than three days
)

func (a *away) begin(generation uint64) { a.word.Store(generation << awayBits) }

func (a *away) add(generation uint64, d time.Duration) {
	for w := a.word.Load(); uint16(w>>awayBits) == uint16(generation); w = a.word.Load() {
		if a.word.CompareAndSwap(w, w+min(uint64(max(d, 0)), mostAway-w&mostAway)) {
			return
		}
	}
}

func (a *away) time() time.Duration { return time.Duration(a.word.Load() & mostAway) }

// pausedGrace is how long work keeps its slots in a pause: much longer than a write that the system
// takes at once.
const pausedGrace = 10 * time.Millisecond

// lookEvery is the least time between two looks for slots that others may have.
const lookEvery = 10 * time.Millisecond

// Pause says that the work waits for its client: to send a body, to take an answer. Time in a pause
// is no part of the sample. A pause that lasts gives the slots to others while others want them;
// the work then counts as Stats.Paused. Pauses nest, also across goroutines: the work goes on after
// as many calls of Resume. Pause does not block, allocates nothing and reads the clock once. Pause of
// work that is Long or has ended does nothing.
func (p Permit) Pause() {
	if p.s == nil {
		return
	}
	s := p.s
	for {
		before, w := s.pausedAt.Load(), s.state.word.Load()
		if w>>generationShift != p.gen || w&mostPauses == mostPauses {
			return
		}
		if w&mostPauses == 0 {
			// The work may have ended, and the next work in the slot be paused.
			if !s.pausedAt.CompareAndSwap(before, int64(p.l.now())) {
				continue
			}
			if !p.l.pauses.Load() {
				p.l.pauses.Store(true)
			}
		}
		if s.state.word.CompareAndSwap(w, w+1) {
			return
		}
	}
}

// Resume ends a pause. Work that has given its slots away takes them again at once, over the limit
// if all are in use: work that has begun does not wait for a slot, since it may hold a lock that
// others with a slot wait for.
func (p Permit) Resume() {
	if p.s == nil {
		return
	}
	s := p.s
	for {
		w := s.state.word.Load()
		n := w & mostPauses
		if w>>generationShift != p.gen || n == 0 {
			return
		}
		if n > 1 {
			if s.state.word.CompareAndSwap(w, w-1) {
				return
			}
			continue
		}
		d := p.l.now() - time.Duration(s.pausedAt.Load())
		if s.state.word.CompareAndSwap(w, p.gen<<generationShift) {
			s.away.add(p.gen, d)
			if w&given != 0 {
				p.back()
			}
			return
		}
	}
}

// back takes the slots of paused work again.
func (p Permit) back() {
	l := p.l
	now := l.lock(l.now())
	defer l.unlock()
	if p.valid() && p.s.work.Paused() {
		l.tick(now)
		l.gate.Back(now, &p.s.work)
		l.changed()
	}
}

// relieves reports whether time alone may free slots: work may pause or be parked.
func (l *Limiter) relieves() bool { return l.aside }

// relieve looks for slots that others may have: those of paused work, and those that the gate's trials
// free. Somebody wants a slot. The caller holds the lock.
func (l *Limiter) relieve(now time.Duration) {
	if now < l.nextLook {
		return
	}
	l.nextLook = now + lookEvery
	freed := false
	if l.pauses.Load() {
		for w := l.gate.Oldest(); w != nil && l.gate.MayPause(); {
			next, s := w.Next(), w.Owner.(*slot)
			if word := s.state.word.Load(); word&mostPauses != 0 && word&given == 0 && now-time.Duration(s.pausedAt.Load()) >= pausedGrace &&
				s.state.word.CompareAndSwap(word, word|given) {
				l.gate.Pause(now, w)
				freed = true
			}
			w = next
		}
	}
	if l.gate.Relieve(now) || freed {
		l.grant(now)
	}
}
