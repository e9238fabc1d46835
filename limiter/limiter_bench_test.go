package limiter

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The simplest alternatives are in the same table: a buffered channel and a counter
// under a mutex, neither with a clock, a context or counts. The lab module compares
// with x/sync's semaphore too; this module imports nothing.

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

// What a scrape costs, by the number of kinds.
func BenchmarkStats(b *testing.B) {
	for _, kinds := range []int{1, 20} {
		b.Run(strconv.Itoa(kinds), func(b *testing.B) {
			l := configured(b, Config{})
			for i := range 10_000 {
				p, err := l.AcquireWith(b.Context(), Request{Kind: strconv.Itoa(i % kinds)})
				if err != nil {
					b.Fatal(err)
				}
				p.Done(nil)
			}
			for b.Loop() {
				_ = l.Stats()
			}
		})
	}
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

// routes are names of kinds of work.
var routes = [...]string{"GET /orders/{id}", "POST /orders", "GET /orders/{id}/items", "GET /reports/{month}"}

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
	b.Run("deadline", func(b *testing.B) {
		l := fixed(b, 1, 1)
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		b.ReportAllocs()
		for b.Loop() {
			p, _ := l.Acquire(ctx)
			p.Done(nil)
		}
	})
	b.Run("kinds", func(b *testing.B) {
		l := fixed(b, 1, 1)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			p, _ := l.AcquireWith(ctx, Request{Kind: routes[i%len(routes)]})
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
		b.Run("kinds/"+name, func(b *testing.B) {
			l := fixed(b, 1, -1)
			acquire(b, l).Done(nil)
			defer acquire(b, l).Release()
			run(b, func() { _, _ = l.AcquireWith(ctx, Request{NoWait: true, Kind: routes[1]}) })
		})
		b.Run("mutex/"+name, func(b *testing.B) {
			m := mutexCounter{most: 0}
			run(b, func() { m.acquire() })
		})
	}
}

// mutexSemaphore is a semaphore that waits first come, first served: a mutex, a
// list and a channel for each waiter, as the one of x/sync, without a context.
type mutexSemaphore struct {
	mu      sync.Mutex
	n       int
	waiting []chan struct{}
}

func (s *mutexSemaphore) acquire() {
	s.mu.Lock()
	if s.n > 0 {
		s.n--
		s.mu.Unlock()
		return
	}
	ready := make(chan struct{})
	s.waiting = append(s.waiting, ready)
	s.mu.Unlock()
	<-ready
}

func (s *mutexSemaphore) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.n++
		return
	}
	close(s.waiting[0])
	s.waiting = s.waiting[1:]
}

// A thousand callers each acquire a slot and release it at once. With a thousand slots
// only the lock is contended. With ten slots most callers wait, or a limiter whose queue
// does not drain refuses them.
func BenchmarkContended(b *testing.B) {
	run := func(b *testing.B, one func()) {
		b.ReportAllocs()
		b.SetParallelism(1000 / runtime.GOMAXPROCS(0))
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				one()
			}
		})
	}
	for _, slots := range []int{1000, 10} {
		b.Run(strconv.Itoa(slots), func(b *testing.B) { contended(b, slots, run) })
	}
}

func contended(b *testing.B, slots int, run func(*testing.B, func())) {
	ctx := context.Background()
	b.Run("limiter", func(b *testing.B) {
		l := fixed(b, slots, 1000)
		var refused atomic.Uint64
		run(b, func() {
			p, err := l.Acquire(ctx)
			if err != nil {
				refused.Add(1)
			}
			p.Done(nil)
		})
		s := l.Stats()
		b.ReportMetric(float64(refused.Load())/float64(b.N), "refused/op")
		b.ReportMetric(float64(s.QueueWait.CountAtMost(0))/float64(max(s.Admitted, 1)), "unqueued/op")
	})
	b.Run("semaphore", func(b *testing.B) {
		s := mutexSemaphore{n: slots}
		run(b, func() { s.acquire(); s.release() })
	})
	if slots >= 1000 { // mutexCounter cannot wait
		b.Run("mutex", func(b *testing.B) {
			m := mutexCounter{most: slots}
			run(b, func() { m.acquire(); m.release() })
		})
	}
	b.Run("channel", func(b *testing.B) {
		c := make(chan struct{}, slots)
		run(b, func() { c <- struct{}{}; <-c })
	})
}
