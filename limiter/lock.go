package limiter

import (
	"runtime"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// An operation takes some ten nanoseconds under the lock. To park for it takes
// hundreds, and once a thousand callers have parked sync.Mutex hands the lock from
// one to the next and everybody parks. So who comes looks again a few times and
// lets others run before it parks. Work that ends does not wait at all: it is left
// for whoever holds the lock, who enters it before anything else is decided, or at
// the latest when the lock is free.
const (
	looks  = 16
	yields = 16
)

// lock begins an operation at a time that may have passed while it waited for
// the lock, and returns the operation's own.
func (l *Limiter) lock(now time.Duration) time.Duration {
	for range yields {
		for range looks {
			if l.mu.TryLock() {
				return l.locked(now)
			}
		}
		runtime.Gosched()
	}
	l.mu.Lock()
	return l.locked(now)
}

// locked begins an operation of a caller that has just got the lock.
func (l *Limiter) locked(now time.Duration) time.Duration {
	if l.ended.Load() != nil {
		l.settleLeft()
	}
	l.last = max(l.last, now)
	if l.memos.dirty {
		l.memos.fold(l.gate)
	}
	return l.last
}

// unlock ends an operation and tells the observer of its changes, who may panic:
// a caller with something at stake uses release.
func (l *Limiter) unlock() { l.tell(l.release()) }

func (l *Limiter) tell(changes []limit.Decision) {
	for _, c := range changes {
		l.observer.LimitChanged(c)
	}
}

// release ends an operation and returns the changes to tell.
func (l *Limiter) release() (changes []limit.Decision) {
	for {
		if l.changes != nil {
			changes, l.changes = append(changes, l.changes...), nil
		}
		if !l.free() {
			return changes
		}
	}
}

// free gives the lock back and wakes whose wait has ended. It reports whether it
// took the lock again, for work that was left meanwhile: who leaves work later finds
// the lock free, or somebody else at it. All that hold the lock end with it.
func (l *Limiter) free() (again bool) {
	woken := l.woken
	if woken != nil {
		l.woken = nil
	}
	l.mu.Unlock()
	for woken != nil {
		w := woken
		woken = w.next // before w is told, and used again
		w.ready <- struct{}{}
	}
	if l.ended.Load() == nil || !l.mu.TryLock() {
		return false
	}
	l.settleLeft()
	return true
}

// leave has work entered that ended at now: by whoever holds the lock, or by the
// caller if nobody does any more.
func (l *Limiter) leave(now time.Duration, s *slot, o limit.Outcome) {
	s.end, s.outcome = now, o
	for {
		s.later = l.ended.Load()
		if l.ended.CompareAndSwap(s.later, s) {
			break
		}
	}
	if l.mu.TryLock() {
		l.locked(now)
		l.unlock()
	}
}

// settleLeft enters work that ended while the lock was held, in the order in which
// it was left. The caller holds the lock.
func (l *Limiter) settleLeft() {
	if l.memos.live {
		l.memos.forget() // while who asks still sees that something was left
	}
	var first *slot
	for s := l.ended.Swap(nil); s != nil; {
		s, s.later, first = s.later, first, s
	}
	for s := first; s != nil; {
		next := s.later
		s.later = nil
		l.last = max(l.last, s.end)
		l.settle(l.last, s, s.outcome)
		s = next
	}
}
