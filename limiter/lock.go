package limiter

import (
	"runtime"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// An operation takes some ten nanoseconds under the lock. To park for it takes
// hundreds, and once a thousand callers have parked sync.Mutex hands the lock from
// one to the next and all of them park. So a caller looks again a few times and
// lets others run before it parks. The end of work does not wait at all: it is
// handed to the goroutine that holds the lock, which enters it before anything else
// is decided, or at the latest when it unlocks.
const (
	looks  = 16
	yields = 16
)

// lock begins an operation at a time that may have passed while it waited for
// the lock, and returns the operation's own.
func (l *Limiter) lock(now time.Duration) time.Duration {
	if l.gate == nil {
		panic("limiter: a Limiter is made by New")
	}
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
		l.settleEnded()
	}
	l.last = max(l.last, now)
	if l.memos.dirty {
		l.memos.fold(l.gate)
	}
	return l.last
}

// unlock ends an operation and tells the observer of its changes, which may panic:
// a caller with something at stake uses release.
func (l *Limiter) unlock() { l.tell(l.release()) }

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

// free gives the lock back and wakes the callers whose wait has ended. It reports
// whether it took the lock again, for ends that were handed over meanwhile: any
// later one finds the lock free, or another holder. All that hold the lock end with
// it.
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
	l.settleEnded()
	return true
}

// enter ends work at now, and returns the changes to tell. While another goroutine
// holds the lock it is handed over to that, or entered by the caller after all if that
// has released the lock meanwhile.
func (l *Limiter) enter(now time.Duration, s *slot, o limit.Outcome) []limit.Decision {
	if l.mu.TryLock() {
		l.settle(l.locked(now), s, o)
		return l.release()
	}
	s.end, s.outcome = now, o
	for {
		s.nextEnded = l.ended.Load()
		if l.ended.CompareAndSwap(s.nextEnded, s) {
			break
		}
	}
	if !l.mu.TryLock() {
		return nil
	}
	l.locked(now)
	return l.release()
}

// settleEnded enters the ends that were handed over, in the order in which they
// were. The caller holds the lock.
func (l *Limiter) settleEnded() {
	if l.memos.live {
		l.memos.forget() // while callers still see that something was handed over
	}
	var first *slot
	for s := l.ended.Swap(nil); s != nil; {
		s, s.nextEnded, first = s.nextEnded, first, s
	}
	for s := first; s != nil; {
		next := s.nextEnded
		s.nextEnded = nil
		l.last = max(l.last, s.end)
		l.settle(l.last, s, s.outcome)
		s = next
	}
}
