package fanout

import (
	"context"
	"fmt"
	"sync"
	"testing"
)

// BenchmarkNested runs 16 branches that call 16 that call 16, which compute: unbounded by hand, and
// with 64 goroutines in total.
func BenchmarkNested(b *testing.B) {
	ctx := context.Background()
	for _, rounds := range []int{0, 1000, 10000} {
		leaf := func(context.Context, int) (uint64, error) { return burn(rounds), nil }
		var unbounded func(depth int)
		unbounded = func(depth int) {
			if depth == 0 {
				_, _ = leaf(ctx, 0)
				return
			}
			var wg sync.WaitGroup
			for range 16 {
				wg.Go(func() { unbounded(depth - 1) })
			}
			wg.Wait()
		}
		b.Run(fmt.Sprintf("rounds=%d/by=waitgroup", rounds), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				unbounded(3)
			}
		})
		for _, mode := range []Mode{Parallel, Auto} {
			budget, _ := NewBudget(64)
			cfg := Config{Mode: mode, Budget: budget}
			call := func(f *Fanout[int, uint64]) func(context.Context, int) (uint64, error) {
				return func(ctx context.Context, _ int) (uint64, error) {
					got, err := f.Do(ctx, 0)
					return got.Value, err
				}
			}
			f := same(b, cfg, 16, call(same(b, cfg, 16, call(same(b, cfg, 16, leaf)))))
			b.Run(fmt.Sprintf("rounds=%d/by=%v", rounds, mode), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, _ = f.Do(ctx, 0)
				}
			})
		}
	}
}
