package fanout

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

// BenchmarkDo compares branches run sequentially, a hand-written WaitGroup, and this package in
// each mode. The first two neither cancel, nor name their errors, nor survive a panic. Run with
// -cpu and benchstat:
//
//	go test -run '^$' -bench Do -count 6 ./fanout | benchstat -col /by -

// burn computes for the given number of rounds, whatever else runs.
func burn(rounds int) (x uint64) {
	x = 1
	for range rounds {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// roundsFor calibrates burn.
var roundsFor = sync.OnceValue(func() float64 {
	const rounds = 1 << 16
	best := time.Hour
	for range 50 {
		began := time.Now()
		sink = burn(rounds)
		best = min(best, time.Since(began))
	}
	return rounds / float64(best)
})

var sink uint64

func BenchmarkDo(b *testing.B) {
	ctx := context.Background()
	for _, kind := range []string{"burn", "wait"} {
		for _, d := range []time.Duration{500 * time.Nanosecond, 2 * time.Microsecond, 5 * time.Microsecond, 20 * time.Microsecond, 100 * time.Microsecond, time.Millisecond} {
			if kind == "wait" && d < time.Millisecond {
				continue // the kernel's timers are not that fine
			}
			rounds := int(float64(d) * roundsFor())
			run := func(context.Context, int) (uint64, error) { return burn(rounds), nil }
			if kind == "wait" {
				run = func(context.Context, int) (uint64, error) { time.Sleep(d); return 1, nil }
			}
			for _, n := range []int{2, 8, 64} {
				name := func(by string) string { return fmt.Sprintf("of=%s/each=%v/n=%d/by=%s", kind, d, n, by) }
				b.Run(name("sequence"), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						for range n {
							v, err := run(ctx, 1)
							if err != nil {
								b.Fatal(err)
							}
							sink += v
						}
					}
				})
				b.Run(name("waitgroup"), func(b *testing.B) {
					b.ReportAllocs()
					values := make([]uint64, n)
					for b.Loop() {
						var wg sync.WaitGroup
						for i := range n {
							wg.Go(func() { values[i], _ = run(ctx, 1) })
						}
						wg.Wait()
					}
				})
				for _, mode := range []Mode{Sequential, Parallel, Auto} {
					b.Run(name(mode.String()), func(b *testing.B) {
						b.ReportAllocs()
						f := same(b, Config{Mode: mode}, n, run)
						for range 40 { // to learn
							_, _ = f.Do(ctx, 1)
						}
						for b.Loop() {
							res, err := f.Do(ctx, 1)
							if err != nil {
								b.Fatal(err)
							}
							sink += res.Value
						}
					})
				}
			}
		}
	}
}

func add(sum *uint64, v uint64) { *sum += v }

// same returns a Fanout of n equal branches.
func same(tb testing.TB, cfg Config, n int, run func(context.Context, int) (uint64, error)) *Fanout[int, uint64] {
	tb.Helper()
	var branches []Branch[int, uint64]
	for i := range n {
		branches = append(branches, Required(fmt.Sprint(i), run, add))
	}
	f, err := New(cfg, branches...)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// BenchmarkYielding compares parallel calls with a hand-written WaitGroup. The branches wait by
// yielding, like branches that hand their work to another goroutine.
func BenchmarkYielding(b *testing.B) {
	ctx := context.Background()
	for _, d := range []time.Duration{time.Microsecond, 5 * time.Microsecond} {
		run := func(context.Context, int) (uint64, error) {
			for began := time.Now(); time.Since(began) < d; {
				runtime.Gosched()
			}
			return 1, nil
		}
		for _, n := range []int{2, 8, 64} {
			b.Run(fmt.Sprintf("each=%v/n=%d/by=waitgroup", d, n), func(b *testing.B) {
				values := make([]uint64, n)
				for b.Loop() {
					var wg sync.WaitGroup
					for i := range n - 1 {
						wg.Go(func() { values[i], _ = run(ctx, 1) })
					}
					values[n-1], _ = run(ctx, 1)
					wg.Wait()
				}
			})
			for _, mode := range []Mode{Sequential, Parallel, Auto} {
				b.Run(fmt.Sprintf("each=%v/n=%d/by=%v", d, n, mode), func(b *testing.B) {
					f := same(b, Config{Mode: mode}, n, run)
					for range 256 {
						_, _ = f.Do(ctx, 1)
					}
					for b.Loop() {
						_, _ = f.Do(ctx, 1)
					}
				})
			}
		}
	}
}
