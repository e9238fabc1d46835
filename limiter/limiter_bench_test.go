package limiter

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limit"
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

func BenchmarkAcquireDone(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	withPermit := func(name string, cfg Config, ctx context.Context, kinds ...string) {
		b.Run(name, func(b *testing.B) {
			l := configured(b, cfg)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				p, _ := l.AcquireWith(ctx, Request{Kind: kinds[i%len(kinds)]})
				p.Done(nil)
			}
		})
	}
	withPermit("limiter", Config{Law: limit.NewFixed(1)}, b.Context(), "")
	withPermit("adaptive", Config{}, b.Context(), "")
	withPermit("deadline", Config{Law: limit.NewFixed(1)}, ctx, "")
	withPermit("kinds", Config{Law: limit.NewFixed(1)}, b.Context(), "GET /orders/{id}", "POST /orders", "GET /orders/{id}/items", "GET /reports/{month}")
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
	for _, callers := range []int{1, 1000} {
		run := func(name string, try func()) {
			b.Run(name+"/"+strconv.Itoa(callers), func(b *testing.B) {
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
			})
		}
		l, m := fixed(b, 1, -1), mutexCounter{}
		acquire(b, l).Done(nil)
		defer acquire(b, l).Release()
		run("limiter", func() { _, _ = l.TryAcquire(b.Context()) })
		run("kinds", func() { _, _ = l.AcquireWith(b.Context(), Request{noWait: true, Kind: "POST /orders"}) })
		run("mutex", func() { m.acquire() })
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
