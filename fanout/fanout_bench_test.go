package fanout

import (
	"context"
	"sync"
	"testing"
	"time"
)

// BenchmarkDo measures a call of branches that do nothing. The lab compares Fanout with others
// (lab/contestants/fan).
func BenchmarkDo(b *testing.B) {
	for _, mode := range []Mode{Sequential, Parallel, Auto} {
		b.Run(mode.String(), func(b *testing.B) {
			f := same(b, Config{Mode: mode}, 8, func(context.Context, int) (uint64, error) { return 1, nil })
			b.ReportAllocs()
			for b.Loop() {
				_, _ = f.Do(b.Context(), 1)
			}
		})
	}
}

// BenchmarkSimple compares a call with the simplest design that could take its place: a goroutine for each
// branch, a result for each, and a cancellation after the first error. It has no partial answers, hedges,
// learned modes or reports of late branches. Branches return at once, or wait for a millisecond.
// See docs/adr/0024-a-fan-out-keeps-its-goroutines.md.
func BenchmarkSimple(b *testing.B) {
	for name, takes := range map[string]time.Duration{"at once": 0, "waiting": time.Millisecond} {
		branch := func(context.Context, int) (uint64, error) {
			if takes > 0 {
				time.Sleep(takes)
			}
			return 1, nil
		}
		b.Run(name+"/fanout", func(b *testing.B) {
			f := same(b, Config{Mode: Parallel}, 8, branch)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = f.Do(b.Context(), 1)
			}
		})
		b.Run(name+"/a goroutine for each branch", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ctx, cancel := context.WithCancelCause(b.Context())
				var all sync.WaitGroup
				results := make([]uint64, 8)
				for i := range results {
					all.Go(func() {
						var err error
						if results[i], err = branch(ctx, 1); err != nil {
							cancel(err)
						}
					})
				}
				all.Wait()
				cancel(nil)
			}
		})
	}
}
