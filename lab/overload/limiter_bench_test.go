package overload

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// The cost of a limiter compared with the alternatives, in one run on one machine.
// time.Now is the unit: a limiter that measures reads the clock, and a semaphore, a
// channel and a counter under a mutex do not.

type counter struct {
	mu        sync.Mutex
	taken, of int
}

func (c *counter) tryAcquire() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken == c.of {
		return false
	}
	c.taken++
	return true
}

func (c *counter) release() {
	c.mu.Lock()
	c.taken--
	c.mu.Unlock()
}

func BenchmarkClock(b *testing.B) {
	for b.Loop() {
		_ = time.Now()
	}
}

func BenchmarkFreeSlot(b *testing.B) {
	ctx := context.Background()
	b.Run("limiter", func(b *testing.B) {
		l := newLimiter(b, limiter.Config{})
		b.ReportAllocs()
		for b.Loop() {
			p, _ := l.Acquire(ctx)
			p.Done(nil)
		}
	})
	b.Run("semaphore", func(b *testing.B) {
		s := semaphore.NewWeighted(8)
		b.ReportAllocs()
		for b.Loop() {
			_ = s.Acquire(ctx, 1)
			s.Release(1)
		}
	})
	b.Run("channel", func(b *testing.B) {
		c := make(chan struct{}, 8)
		for b.Loop() {
			c <- struct{}{}
			<-c
		}
	})
	b.Run("mutex", func(b *testing.B) {
		c := counter{of: 8}
		for b.Loop() {
			c.tryAcquire()
			c.release()
		}
	})
}

func BenchmarkNoFreeSlot(b *testing.B) {
	ctx := context.Background()
	for _, callers := range []int{1, 1000} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) {
			b.Run("limiter", func(b *testing.B) {
				l := newLimiter(b, limiter.Config{Law: limit.NewFixed(1), QueueSize: -1})
				_, _ = l.Acquire(ctx)
				by(b, callers, func() { _, _ = l.Acquire(ctx) })
			})
			b.Run("semaphore", func(b *testing.B) {
				s := semaphore.NewWeighted(1)
				_ = s.Acquire(ctx, 1)
				by(b, callers, func() { s.TryAcquire(1) })
			})
			b.Run("channel", func(b *testing.B) {
				c := make(chan struct{})
				by(b, callers, func() {
					select {
					case c <- struct{}{}:
					default:
					}
				})
			})
			b.Run("mutex", func(b *testing.B) {
				c := counter{}
				by(b, callers, func() { c.tryAcquire() })
			})
		})
	}
}

// A thousand callers acquire a slot and release it at once: of a thousand slots, where
// only the lock of the count is contended, and of ten, where most callers wait or are
// refused by a limiter whose queue does not drain. The semaphore is a count and a
// queue under a mutex; timed is the same with the two clock readings that measure
// work.
func BenchmarkThousandCallers(b *testing.B) {
	ctx := context.Background()
	for _, slots := range []int{1000, 10} {
		b.Run(strconv.Itoa(slots)+"slots", func(b *testing.B) {
			b.Run("limiter", func(b *testing.B) {
				l := newLimiter(b, limiter.Config{Law: limit.NewFixed(slots)})
				by(b, 1000, func() {
					p, _ := l.Acquire(ctx)
					p.Done(nil)
				})
				s := l.Stats()
				b.ReportMetric(float64(s.Rejected)/float64(s.Offered), "refused/op")
			})
			s := semaphore.NewWeighted(int64(slots))
			b.Run("semaphore", func(b *testing.B) {
				by(b, 1000, func() {
					_ = s.Acquire(ctx, 1)
					s.Release(1)
				})
			})
			b.Run("timed", func(b *testing.B) {
				start := time.Now()
				var took atomic.Int64 // of the last: the readings are not dropped
				by(b, 1000, func() {
					_ = s.Acquire(ctx, 1)
					from := time.Since(start)
					s.Release(1)
					if d := time.Since(start) - from; d > time.Second {
						took.Store(int64(d))
					}
				})
			})
			b.Run("channel", func(b *testing.B) {
				c := make(chan struct{}, slots)
				by(b, 1000, func() { c <- struct{}{}; <-c })
			})
			if slots < 1000 {
				return // a counter cannot wait
			}
			b.Run("mutex", func(b *testing.B) {
				c := counter{of: slots}
				by(b, 1000, func() { c.tryAcquire(); c.release() })
			})
		})
	}
}

func newLimiter(b *testing.B, cfg limiter.Config) *limiter.Limiter {
	b.Helper()
	l, err := limiter.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func by(b *testing.B, callers int, one func()) {
	b.ReportAllocs()
	if callers == 1 {
		for b.Loop() {
			one()
		}
		return
	}
	b.SetParallelism(callers / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			one()
		}
	})
}
