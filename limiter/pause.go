package limiter

import "time"

// pausedGrace is how long work keeps its slots in a pause: much longer than a write that the system
// takes at once.
const pausedGrace = 10 * time.Millisecond

// lookEvery is the least time between two looks for slots that others may have.
const lookEvery = 10 * time.Millisecond

// Pause says that the work waits for its client: to send a body, to take an answer. Time in a pause
// is no part of the sample. A pause that lasts gives the slots to others while others want them;
// the work then counts as Stats.Paused. Pauses nest, also across goroutines: the work goes on after
// as many calls of Resume. Pause does not wait for other work, allocates nothing and reads the clock
// once. Pause of work that is Long or has ended does nothing.
func (p Permit) Pause() {
	if p.s == nil {
		return
	}
	s, now := p.s, p.l.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.generation.Load() != p.gen {
		return
	}
	if s.pauses++; s.pauses == 1 {
		s.pausedAt = now
		if !p.l.pauses.Load() {
			p.l.pauses.Store(true)
		}
	}
}

// Resume ends a pause. Work that has given its slots away takes them again at once, over the limit
// if all are in use: work that has begun does not wait for a slot, since it may hold a lock that
// others with a slot wait for.
func (p Permit) Resume() {
	if p.s != nil && p.s.resume(p.gen, p.l.now()) {
		p.change(func(now time.Duration, s *slot) {
			if s.work.Paused() {
				p.l.gate.Back(now, &s.work)
			}
		})
	}
}

// resume ends a pause of the work of a generation. It reports whether the slots of the work were given
// to others meanwhile.
func (s *slot) resume(generation uint64, now time.Duration) (given bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.generation.Load() != generation || s.pauses == 0 {
		return false
	}
	if s.pauses--; s.pauses == 0 {
		s.away += max(now-s.pausedAt, 0)
		given, s.given = s.given, false
	}
	return given
}

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
			if s.mu.TryLock() { // a pause that begins or ends now gives nothing
				if s.pauses > 0 && !s.given && now-s.pausedAt >= pausedGrace {
					s.given = true
					l.gate.Pause(now, w)
					freed = true
				}
				s.mu.Unlock()
			}
			w = next
		}
	}
	if l.gate.Relieve(now) || freed {
		l.grant(now)
	}
}
