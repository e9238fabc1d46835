package limiter

import (
	"runtime"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// An operation takes some ten nanoseconds under the lock, but parking a goroutine takes
// hundreds. Once a thousand callers have parked, sync.Mutex hands the lock from one
// caller to the next and all callers park. So a caller tries the lock a few times and
// yields to other goroutines before it parks. The end of work never waits: the end is
// handed to the lock holder. The lock holder settles the end before any other decision,
// or at the latest when it unlocks.
const (
	looks  = 16
	yields = 16
)

// lock takes the lock for an operation and returns the operation's time. The returned
// time is not before now, nor before the time of an earlier operation.
func (l *Limiter) lock(now time.Duration) time.Duration {
	if !l.mu.TryLock() {
		l.lockContended()
	}
	l.catchUp()
	l.last = max(l.last, now)
	return l.last
}

// lockContended takes the lock after a first look has found it taken.
func (l *Limiter) lockContended() {
	for range yields {
		for range looks {
			if l.mu.TryLock() {
				return
			}
		}
		runtime.Gosched()
	}
	l.mu.Lock()
}

// catchUp does what others have left to the lock holder. A caller that has just taken the lock calls
// catchUp.
func (l *Limiter) catchUp() {
	if l.memos.dirty || l.ended.Load() != nil {
		l.settleAll()
	}
}

func (l *Limiter) settleAll() {
	if l.ended.Load() != nil {
		l.settleEnded()
	}
	if l.memos.dirty {
		l.memos.fold(l.gate)
	}
}

// unlock ends an operation and reports its changes to the observer. The observer may
// panic: a caller that must clean up after a panic uses release.
func (l *Limiter) unlock() { l.reportChanges(l.release()) }

// releaseFor is release after the admission of p. If a user-defined law ends the goroutine, releaseFor ends the work, which
// will not run.
func (l *Limiter) releaseFor(p Permit) []limit.Decision {
	returned := false
	defer func() {
		if !returned {
			p.Release()
		}
	}()
	changes := l.release()
	returned = true
	return changes
}

// release ends an operation and returns the changes to report to the observer.
func (l *Limiter) release() []limit.Decision {
	if l.changes == nil && l.woken == nil && l.careful == nil { // what releaseAll does in one round, sooner
		l.mu.Unlock()
		if l.ended.Load() == nil || !l.mu.TryLock() {
			return nil
		}
		l.settleEnded()
	}
	return l.releaseAll()
}

func (l *Limiter) releaseAll() (changes []limit.Decision) {
	for again := true; again; again = l.free() {
		if l.careful != nil {
			l.consult() // before the changes are collected
		}
		changes, l.changes = append(changes, l.changes...), nil
	}
	return changes
}

// free releases the lock and wakes the callers whose wait has ended. It returns true if
// it took the lock again to settle ends that were handed over meanwhile: any later end
// finds the lock free or another holder. Every holder of the lock releases it with free.
func (l *Limiter) free() (again bool) {
	if l.careful != nil {
		l.consult()
	}
	woken := l.woken
	l.woken = nil
	l.mu.Unlock()
	for woken != nil {
		w := woken
		woken = w.next // before the message, after which w may be reused
		w.ready <- struct{}{}
	}
	if l.ended.Load() == nil || !l.mu.TryLock() {
		return false
	}
	l.settleEnded()
	return true
}

// handOver hands the end of work to the goroutine that holds the lock. If the lock is free after the
// handover, handOver takes the lock and settles the end itself, and returns the changes to report.
func (l *Limiter) handOver(now time.Duration, s *slot, o limit.Outcome) []limit.Decision {
	s.ended, s.outcome = now, o
	for {
		s.next = l.ended.Load()
		if l.ended.CompareAndSwap(s.next, s) {
			break
		}
	}
	if !l.mu.TryLock() {
		return nil
	}
	l.catchUp()
	l.last = max(l.last, now)
	return l.release()
}

// settleEnded settles the ends that were handed over, in the order of the handover. The
// caller holds the lock.
func (l *Limiter) settleEnded() {
	if l.memos.live.Load() {
		l.memos.forget() // while l.ended still keeps callers from the memos
	}
	var first *slot
	for s := l.ended.Swap(nil); s != nil; {
		s, s.next, first = s.next, first, s
	}
	for s := first; s != nil; {
		next := s.next
		l.last = max(l.last, s.ended)
		l.settle(l.last, s, s.outcome)
		s = next
	}
}

// stale reports whether changed has anything to do.
func (l *Limiter) stale() bool {
	return l.memos.live.Load() || l.limit.Load() != int64(l.gate.Limit())
}

// changed is called after every operation except a rejection, if stale. changed forgets the memos,
// which no longer hold, and publishes a changed limit.
func (l *Limiter) changed() {
	if l.memos.live.Load() {
		l.memos.forget()
	}
	if n := l.gate.Limit(); int64(n) != l.limit.Load() {
		l.relimit(n)
	}
}
