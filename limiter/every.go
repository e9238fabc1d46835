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

// every is inside.Limiter.Every.
func (l *Limiter) every(d time.Duration, f func()) (stop func()) {
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
