package fanout

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Random trees of calls have bulkheads of any size, any mode, failures, and a Fanout nested inside
// itself. None deadlocks, and every token comes back. A call from outside with all its nested calls
// is one tree.
func TestRandomNestingsEnd(t *testing.T) {
	trees := int64(20_000)
	if raceEnabled {
		trees = 5000
	}
	var grown, inside atomic.Int64 // trees; calls within them
	shared, _ := NewBulkhead(3)
	type job struct {
		seed  uint64
		depth int
	}
	var values []*Fanout[job, int]
	nested := func(ctx context.Context, j job) (int, error) {
		rng := rand.New(rand.NewPCG(j.seed, uint64(j.depth)))
		switch {
		case j.depth == 0 || rng.IntN(4) != 0:
			return 1, nil
		case rng.IntN(50) == 0:
			return 0, errDown
		case rng.IntN(4) == 0:
			sums, err := Map(ctx, MapConfig{Limit: 1 + rng.IntN(3)}, []uint64{1, 2, 3}, func(ctx context.Context, x uint64) (int, error) {
				inside.Add(1)
				got, err := values[int(x)%len(values)].Do(ctx, job{seed: j.seed + x, depth: j.depth - 1})
				return got.Value, err
			})
			return len(sums), err
		}
		inside.Add(1)
		got, err := values[rng.IntN(len(values))].Do(ctx, job{seed: rng.Uint64(), depth: j.depth - 1})
		return got.Value, err
	}
	for i, cfg := range []Config{{Bulkhead: shared}, {Mode: Parallel, Bulkhead: shared}, {Mode: Parallel}, {Mode: Sequential}, {}} {
		var branches []Branch[job, int]
		for j := range 2 + i%3 {
			b := Optional(string(rune('a'+j)), nested, func(sum *int, v int) { *sum += v })
			if j == 0 {
				b = Required("a", nested, func(sum *int, v int) { *sum += v })
			}
			branches = append(branches, b)
		}
		f := made(t, cfg, branches...)
		values = append(values, f)
	}
	synctest.Test(t, func(t *testing.T) { // synctest detects a deadlock
		var wg sync.WaitGroup
		for worker := range 4 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(7, uint64(worker)))
				for grown.Add(1) <= trees {
					_, _ = values[rng.IntN(len(values))].Do(t.Context(), job{seed: rng.Uint64(), depth: rng.IntN(4)})
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		t.Logf("%d trees with %d calls inside", trees, inside.Load())
		for i, f := range values {
			if n := f.bulkhead.InUse(); n != 0 {
				t.Errorf("value %d: %d tokens are missing", i, n)
			}
		}
	})
}

// Leaves of nested calls sleep for a millisecond. 64 goroutines and the caller need at least 64 ms.
// Waiting parents hold tokens meanwhile, and branches without a token run in their callers, so that
// no goroutine is idle for long.
func TestNestedCallsThatSleepKeepTheBudgetBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bulkhead, _ := NewBulkhead(64)
		most, goroutines := 0, 0
		var mu sync.Mutex
		leaf := func(context.Context, int) (uint64, error) {
			mu.Lock()
			most = max(most, bulkhead.InUse())
			mu.Unlock()
			time.Sleep(ms)
			return 1, nil
		}
		for _, mode := range []Mode{Parallel, Auto} {
			cfg := Config{Mode: mode, Bulkhead: bulkhead}
			call := func(f *Fanout[int, uint64]) func(context.Context, int) (uint64, error) {
				return func(ctx context.Context, _ int) (uint64, error) {
					got, err := f.Do(ctx, 0)
					return got.Value, err
				}
			}
			f := same(t, cfg, 16, call(same(t, cfg, 16, call(same(t, cfg, 16, leaf)))))
			before, stop := inBubble(), make(chan struct{})
			go func() { // between two leaves all goroutines wait, and none is about to end
				for time.Sleep(ms / 2); ; time.Sleep(ms) {
					select {
					case <-stop:
						return
					default:
						synctest.Wait()
						goroutines = max(goroutines, inBubble()-before-1)
					}
				}
			}()
			for range 3 {
				began := time.Now()
				got, err := f.Do(t.Context(), 0)
				if err != nil || got.Value != 16*16*16 {
					t.Fatal(got, err)
				}
				elapsed := time.Since(began)
				if elapsed > 2*64*ms {
					t.Errorf("%v: it took %v", mode, elapsed)
				}
			}
			close(stop)
		}
		time.Sleep(ms)
		if synctest.Wait(); most > 64 || bulkhead.InUse() != 0 {
			t.Errorf("%d tokens at once, %d are left", most, bulkhead.InUse())
		}
		// A goroutine that ends is counted for a moment longer, on each processor. Without a bulkhead
		// there would be thousands.
		if most := 64 + runtime.GOMAXPROCS(0); goroutines > most || goroutines < 32 {
			t.Errorf("%d goroutines at once, want at most %d", goroutines, most)
		}
	})
}

// inBubble is the number of goroutines in bubbles, which are those of one test here.
// runtime.NumGoroutine counts those that have ended, too, while a garbage collection frees their
// stacks: 1,347 instead of 64 were counted after a test with many.
func inBubble() int {
	stacks := make([]byte, 1<<20)
	n := runtime.Stack(stacks, true)
	return strings.Count(string(stacks[:n]), ", synctest bubble ")
}
