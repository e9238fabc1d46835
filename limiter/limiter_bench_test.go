package limiter

import (
	"context"
	"sync"
	"testing"
	"time"
)

// The simplest alternatives stand in the same table: a buffered channel and a
// counter under a mutex, neither with a clock, a context or a count. x/sync's
// semaphore is beside them in the lab module; this one imports nothing.

type mutexCounter struct {
	mu   sync.Mutex
	n    int
	most int
}

func (m *mutexCounter) acquire() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.n == m.most {
		return false
	}
	m.n++
	return true
}

func (m *mutexCounter) release() {
	m.mu.Lock()
	m.n--
	m.mu.Unlock()
}

func BenchmarkClock(b *testing.B) {
	b.Run("now", func(b *testing.B) {
		for b.Loop() {
			_ = time.Now()
		}
	})
	b.Run("since", func(b *testing.B) {
		start := time.Now()
		for b.Loop() {
			_ = time.Since(start)
		}
	})
}

func BenchmarkAcquireDone(b *testing.B) {
	ctx := context.Background()
	b.Run("limiter", func(b *testing.B) {
		l := fixed(b, 1, 1)
		b.ReportAllocs()
		for b.Loop() {
			p, _ := l.Acquire(ctx)
			p.Done(nil)
		}
	})
	b.Run("adaptive", func(b *testing.B) {
		l, _ := New(Config{})
		b.ReportAllocs()
		for b.Loop() {
			p, _ := l.Acquire(ctx)
			p.Done(nil)
		}
	})
	b.Run("channel", func(b *testing.B) {
		slots := make(chan struct{}, 1)
		for b.Loop() {
			slots <- struct{}{}
			<-slots
		}
	})
	b.Run("mutex", func(b *testing.B) {
		m := mutexCounter{most: 1}
		for b.Loop() {
			m.acquire()
			m.release()
		}
	})
}

func BenchmarkReject(b *testing.B) {
	ctx := context.Background()
	for _, callers := range []int{1, 1000} {
		name := map[int]string{1: "1", 1000: "1000"}[callers]
		run := func(b *testing.B, try func()) {
			b.ReportAllocs()
			if callers == 1 {
				for b.Loop() {
					try()
				}
				return
			}
			b.SetParallelism(callers / 2)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					try()
				}
			})
		}
		b.Run("limiter/"+name, func(b *testing.B) {
			l := fixed(b, 1, -1)
			acquire(b, l).Done(nil)
			defer acquire(b, l).Release()
			run(b, func() { _, _ = l.TryAcquire(ctx) })
		})
		b.Run("mutex/"+name, func(b *testing.B) {
			m := mutexCounter{most: 0}
			run(b, func() { m.acquire() })
		})
	}
}
