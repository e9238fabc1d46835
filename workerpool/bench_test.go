package workerpool

import (
	"context"
	"fmt"
	"sync"
	"testing"
)

// each runs b.N calls, divided among goroutines.
func each(b *testing.B, goroutines int, call func()) {
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			for range b.N*(i+1)/goroutines - b.N*i/goroutines {
				call()
			}
		})
	}
	wg.Wait()
}

// BenchmarkPool measures the submission of a job that does nothing, its result, and a refusal. The
// lab compares the pool with others (lab/shapes).
func BenchmarkPool(b *testing.B) {
	ctx := context.Background()
	for _, callers := range []int{1, 64, 1000} {
		p := pool(b, Config{MaxWorkers: 2, QueueSize: 1024})
		b.Run(fmt.Sprintf("Submit/callers=%d", callers), func(b *testing.B) {
			each(b, callers, func() { _ = p.Submit(ctx, nothing) })
		})
		b.Run(fmt.Sprintf("Do/callers=%d", callers), func(b *testing.B) {
			each(b, callers, func() { _, _ = Do(ctx, p, func(context.Context) (int, error) { return 1, nil }) })
		})
		b.Run(fmt.Sprintf("refusal/callers=%d", callers), func(b *testing.B) {
			full, hold := pool(b, Config{MaxWorkers: 1, QueueSize: -1}), make(chan struct{})
			_ = full.Submit(ctx, func(context.Context) error { <-hold; return nil })
			each(b, callers, func() { _ = full.TrySubmit(ctx, nothing) })
			close(hold)
		})
	}
}
