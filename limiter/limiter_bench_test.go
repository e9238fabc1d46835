package limiter

import (
	"context"
	"sync"
	"testing"
)

// The simplest alternatives stand in the same table: a buffered channel and a
// counter under a mutex, neither with a clock, a context or a count.

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
	b.Run("channel", func(b *testing.B) {
		slots := make(chan struct{}, 1)
		for b.Loop() {
			slots <- struct{}{}
			<-slots
		}
	})
	b.Run("mutex", func(b *testing.B) {
		var mu sync.Mutex
		n := 0
		for b.Loop() {
			mu.Lock()
			n++
			mu.Unlock()
			mu.Lock()
			n--
			mu.Unlock()
		}
	})
}

func BenchmarkReject(b *testing.B) {
	l := fixed(b, 1, -1)
	defer acquire(b, l).Release()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = l.TryAcquire(ctx)
	}
}
