package limiter

import (
	"slices"
	"sync"
	"time"
)

// followers are those who asked for a call now and then.
type followers []*follower

type follower struct {
	every, next time.Duration
	f           func()
}

// Every calls f now and then while l is used: not more often than d, nor than every 100 ms, and soon after d
// has passed. The calls are made one at a time, without the limiter's lock, on goroutines that acquire or end
// a permit, which they delay. So a limiter that nobody uses makes no call, and its counts stand still. In mode
// Off there are no calls either. Use Every to sample Stats without a goroutine. f must not call Every or stop.
// After stop has returned, f is not called.
func (l *Limiter) Every(d time.Duration, f func()) (stop func()) {
	l.polling.Lock()
	defer l.polling.Unlock()
	d = min(d, forever/2)
	one := &follower{every: d, next: l.now() + d, f: f}
	l.follow = append(l.follow, one)
	l.followed.Store(true)
	l.due.Store(0)
	return sync.OnceFunc(func() {
		l.polling.Lock()
		defer l.polling.Unlock()
		l.follow = slices.DeleteFunc(l.follow, func(o *follower) bool { return o == one })
		l.followed.Store(len(l.follow) > 0)
	})
}

// tell calls the followers whose time has come. The caller holds polling.
func (l *Limiter) tell(now time.Duration) {
	for _, one := range l.follow {
		if now >= one.next {
			one.next = now + one.every
			one.f()
		}
	}
}
