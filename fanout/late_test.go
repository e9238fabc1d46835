package fanout

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
)

// One call in a hundred has a branch that ignores its context and answers, with
// something big, to nobody. No other call may see any of it, and when these
// branches have ended nothing is left of them.
func TestLateBranchesHarmNobody(t *testing.T) {
	calls := 1_000_000
	if raceEnabled || testing.Short() {
		calls = 50_000
	}
	synctest.Test(t, func(t *testing.T) {
		type answer struct {
			sum     int
			answers int
		}
		hang := sync.NewCond(new(sync.Mutex))
		released := 0
		round := 0
		branch := func(_ context.Context, id int) (*[64]int, error) {
			if id%100 == 0 {
				hang.L.Lock()
				for mine := round; released <= mine; {
					hang.Wait()
				}
				hang.L.Unlock()
			}
			var big [64]int
			for i := range big {
				big[i] = id
			}
			return &big, nil
		}
		into := func(a *answer, big *[64]int) {
			a.answers++
			for _, v := range big {
				a.sum += v
			}
		}
		quick := func(_ context.Context, id int) (int, error) {
			if id%100 == 0 {
				return 0, errDown
			}
			return id, nil
		}
		budget, _ := NewBudget(1 << 20)
		f, err := New(Config{Mode: Parallel, Budget: budget},
			Required("a", quick, func(a *answer, v int) { a.sum += v; a.answers++ }),
			Required("b", branch, into), Optional("c", branch, into))
		if err != nil {
			t.Fatal(err)
		}
		const rounds = 10
		var heap [rounds]uint64
		for round = range rounds {
			for i := range calls / rounds {
				id := round*calls/rounds + i + 1
				got, err := f.Do(t.Context(), id)
				if id%100 == 0 {
					if !errors.Is(err, errDown) || got.Value != (answer{}) {
						t.Fatal(id, got, err)
					}
				} else if err != nil || got.Value != (answer{id * 129, 3}) || got.Partial() {
					t.Fatalf("call %d: %+v, %v", id, got, err)
				}
			}
			hang.L.Lock()
			released++
			hang.L.Unlock()
			hang.Broadcast()
			synctest.Wait()
			if n := budget.InUse(); n != 0 {
				t.Fatalf("%d goroutines are left", n)
			}
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			heap[round] = m.HeapAlloc
		}
		if first, last := heap[1], heap[rounds-1]; last > first+first/4+1<<20 {
			t.Errorf("the heap went from %d to %d", first, last)
		}
		if s := f.Stats(); s.Late != s.LateEnded || s.Failed != uint64(calls/100) || s.Calls != uint64(calls) {
			t.Errorf("%+v", s)
		}
	})
}

func TestALatePanicIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []*BranchError
		f := newLookup(t, Config{OnLate: func(e *BranchError) { told = append(told, e) }}, after(1*ms, errDown), panics(time.Second))
		_, _ = f.Do(t.Context(), "")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(told) != 1 || told[0].Branch != "cache" {
			t.Fatal(told)
		}
		if _, ok := errors.AsType[*spillway.PanicError](told[0].Err); !ok || f.Stats().LatePanics != 1 {
			t.Error(told[0].Err, f.Stats())
		}
	})
}

// Trees of calls at random: budgets of any size, any mode, failures, one value
// inside itself. None deadlocks, and every token comes back.
func TestRandomNestingsEnd(t *testing.T) {
	calls := int64(1_000_000)
	if raceEnabled || testing.Short() {
		calls = 50_000
	}
	var made atomic.Int64
	shared, _ := NewBudget(3)
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
				made.Add(1)
				got, err := values[int(x)%len(values)].Do(ctx, job{seed: j.seed + x, depth: j.depth - 1})
				return got.Value, err
			})
			return len(sums), err
		}
		made.Add(1)
		got, err := values[rng.IntN(len(values))].Do(ctx, job{seed: rng.Uint64(), depth: j.depth - 1})
		return got.Value, err
	}
	for i, cfg := range []Config{{Budget: shared}, {Mode: Parallel, Budget: shared}, {Mode: Parallel}, {Mode: Sequential}, {}} {
		var branches []Branch[job, int]
		for j := range 2 + i%3 {
			b := Optional(string(rune('a'+j)), nested, func(sum *int, v int) { *sum += v })
			if j == 0 {
				b = Required("a", nested, func(sum *int, v int) { *sum += v })
			}
			branches = append(branches, b)
		}
		f, err := New(cfg, branches...)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, f)
	}
	synctest.Test(t, func(t *testing.T) { // where a deadlock is noticed
		var wg sync.WaitGroup
		for worker := range 4 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(7, uint64(worker)))
				for made.Add(1) < calls {
					_, _ = values[rng.IntN(len(values))].Do(t.Context(), job{seed: rng.Uint64(), depth: rng.IntN(4)})
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		for i, f := range values {
			if n := f.budget.InUse(); n != 0 {
				t.Errorf("value %d: %d tokens are missing", i, n)
			}
		}
	})
}

// 16 branches that each call 16 that each call 16, with 64 goroutines for all.
func TestNestedCallsStayWithinTheBudget(t *testing.T) {
	budget, _ := NewBudget(64)
	var mu sync.Mutex
	running, most := 0, 0
	leaf := func(context.Context, int) (uint64, error) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		runtime.Gosched()
		mu.Lock()
		running--
		mu.Unlock()
		return 1, nil
	}
	cfg := Config{Mode: Parallel, Budget: budget}
	call := func(f *Fanout[int, uint64]) func(context.Context, int) (uint64, error) {
		return func(ctx context.Context, _ int) (uint64, error) {
			got, err := f.Do(ctx, 0)
			return got.Value, err
		}
	}
	f := same(t, cfg, 16, call(same(t, cfg, 16, call(same(t, cfg, 16, leaf)))))
	before := runtime.NumGoroutine()
	stop, watched := make(chan struct{}), make(chan int)
	go func() {
		peak := 0
		for {
			select {
			case <-stop:
				watched <- peak
				return
			default:
				peak = max(peak, runtime.NumGoroutine())
				runtime.Gosched()
			}
		}
	}()
	for range 5 {
		if got, err := f.Do(t.Context(), 0); err != nil || got.Value != 16*16*16 {
			t.Fatal(got, err)
		}
	}
	close(stop)
	// A goroutine gives its token back just before it is gone.
	if extra := <-watched - before - 1; extra > 64+16 || most > 64+1 {
		t.Errorf("%d extra goroutines, %d leaves at once", extra, most)
	}
}

// The same with leaves that sleep for a millisecond. 64 goroutines and the caller
// need 64 of them at the very least; parents that wait hold tokens all the while,
// and branches that find none run in their callers, so that none stands idle for
// long.
func TestNestedCallsThatSleepKeepTheBudgetBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget, _ := NewBudget(64)
		most := 0
		var mu sync.Mutex
		leaf := func(context.Context, int) (uint64, error) {
			mu.Lock()
			most = max(most, budget.InUse())
			mu.Unlock()
			time.Sleep(ms)
			return 1, nil
		}
		for _, mode := range []Mode{Parallel, Auto} {
			cfg := Config{Mode: mode, Budget: budget}
			call := func(f *Fanout[int, uint64]) func(context.Context, int) (uint64, error) {
				return func(ctx context.Context, _ int) (uint64, error) {
					got, err := f.Do(ctx, 0)
					return got.Value, err
				}
			}
			f := same(t, cfg, 16, call(same(t, cfg, 16, call(same(t, cfg, 16, leaf)))))
			for range 3 {
				began := time.Now()
				got, err := f.Do(t.Context(), 0)
				if err != nil || got.Value != 16*16*16 {
					t.Fatal(got, err)
				}
				took := time.Since(began)
				if took > 2*64*ms {
					t.Errorf("%v: it took %v", mode, took)
				}
			}
		}
		if synctest.Wait(); most > 64 || budget.InUse() != 0 {
			t.Errorf("%d goroutines at once, %d are left", most, budget.InUse())
		}
	})
}

// Without a token everything runs in the caller, one branch after the other, and
// means the same.
func TestWithoutATokenACallDoesWhatItsSequentialTwinSays(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 3000 {
		data := make([]byte, 2+rng.IntN(20))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		data[0] |= 1 // sequential
		p := parse(data)
		for i := range p.branches {
			// Whether the caller left before or after a branch failed that did not
			// hear of it, only one that waits could tell.
			p.branches[i].deaf = p.branches[i].deaf && !p.cancel
		}
		synctest.Test(t, func(t *testing.T) {
			p.spent = true
			if got, want := p.live(t), p.twin(); got != want {
				t.Fatalf("%+v:\n got %+v\nwant %+v", p, got, want)
			}
		})
	}
}
