package overload

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// What a limiter costs beside what people would use instead, in one run on one
// machine. time.Now is the unit: a limiter that measures reads the clock, and a
// semaphore, a channel and a counter under a mutex do not.

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

// A thousand callers want ten slots and give them back at once.
func BenchmarkThousandCallersTenSlots(b *testing.B) {
	ctx := context.Background()
	b.Run("limiter", func(b *testing.B) {
		l := newLimiter(b, limiter.Config{Law: limit.NewFixed(10)})
		by(b, 1000, func() {
			p, _ := l.Acquire(ctx)
			p.Done(nil)
		})
		s := l.Stats()
		b.ReportMetric(float64(s.Rejected)/float64(s.Offered), "refused/op")
	})
	b.Run("semaphore", func(b *testing.B) {
		s := semaphore.NewWeighted(10)
		by(b, 1000, func() {
			_ = s.Acquire(ctx, 1)
			s.Release(1)
		})
	})
	b.Run("channel", func(b *testing.B) {
		c := make(chan struct{}, 10)
		by(b, 1000, func() { c <- struct{}{}; <-c })
	})
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
