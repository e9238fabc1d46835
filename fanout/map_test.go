package fanout

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// peak records the highest number of concurrent calls.
type peak struct {
	mu        sync.Mutex
	now, most int
}

func (p *peak) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now++
	p.most = max(p.most, p.now)
}

func (p *peak) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now--
}

// nap is a call that takes a millisecond.
func (p *peak) nap(context.Context, int) (int, error) {
	p.enter()
	defer p.leave()
	time.Sleep(ms)
	return 0, nil
}

func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func TestMapIsBoundedAndInOrder(t *testing.T) {
	for _, c := range []struct{ limit, items, want int }{{0, 1000, 8 * runtime.GOMAXPROCS(0)}, {1, 10, 1}, {3, 100, 3}, {50, 20, 20}, {2, 0, 0}} {
		synctest.Test(t, func(t *testing.T) {
			var p peak
			began := time.Now()
			got, err := Map(t.Context(), MapConfig{Limit: c.limit}, numbers(c.items), func(_ context.Context, i int) (int, error) {
				p.enter()
				defer p.leave()
				time.Sleep(ms)
				return 2 * i, nil
			})
			if err != nil || len(got) != c.items || !slices.IsSorted(got) || c.items > 0 && got[c.items-1] != 2*c.items-2 {
				t.Fatal(got, err)
			}
			if p.most != c.want {
				t.Errorf("limit %d: %d at once, want %d", c.limit, p.most, c.want)
			}
			if rounds := (c.items + max(c.want, 1) - 1) / max(c.want, 1); time.Since(began) != time.Duration(rounds)*ms {
				t.Errorf("limit %d: %v for %d elements", c.limit, time.Since(began), c.items)
			}
		})
	}
}

// The caller, which works while the bulkhead is spent, once did not count against Limit. When a token
// came back, one goroutine more than Limit was started.
func TestMapKeepsItsLimitWhenTheBudgetWasEmptyAtFirst(t *testing.T) {
	for _, limit := range []int{1, 2, 5} {
		synctest.Test(t, func(t *testing.T) {
			bulkhead, err := NewBulkhead(10)
			if err != nil {
				t.Fatal(err)
			}
			var others sync.WaitGroup
			others.Go(func() { // takes every token, for half an element's time
				_, _ = Map(t.Context(), MapConfig{Limit: 10, Bulkhead: bulkhead}, numbers(10), func(context.Context, int) (int, error) {
					time.Sleep(ms / 2)
					return 0, nil
				})
			})
			synctest.Wait()
			if bulkhead.InUse() != 10 {
				t.Fatalf("%d tokens are taken of 10", bulkhead.InUse())
			}
			var p peak
			_, err = Map(t.Context(), MapConfig{Limit: limit, Bulkhead: bulkhead}, numbers(20), p.nap)
			others.Wait()
			if err != nil || p.most != limit {
				t.Errorf("limit %d: %d at once, %v", limit, p.most, err)
			}
		})
	}
}

// An element with a nested Map of many elements once had a bulkhead of one goroutine for all of them.
func TestNestedMapHasTheLimitOfTheOuterOneNotItsLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p peak
		_, err := Map(t.Context(), MapConfig{Limit: 4}, numbers(1), func(ctx context.Context, _ int) ([]int, error) {
			return Map(ctx, MapConfig{Limit: 8}, numbers(20), p.nap)
		})
		if err != nil || p.most != 3 { // of the four goroutines, one runs the outer element
			t.Errorf("%d at once, want 3: %v", p.most, err)
		}
	})
}

func TestMapEndsWithTheFirstError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := 0
		var mu sync.Mutex
		var cause error
		began := time.Now()
		var late []int
		report := func(e *ItemError) {
			mu.Lock()
			defer mu.Unlock()
			late = append(late, e.Index)
		}
		got, err := Map(t.Context(), MapConfig{Limit: 4, OnLate: report}, numbers(100), func(ctx context.Context, i int) (int, error) {
			mu.Lock()
			started++
			mu.Unlock()
			switch i {
			case 0: // ignores its context
				time.Sleep(time.Hour)
				panic("and nobody there")
			case 1:
				time.Sleep(ms)
				return 0, errDown
			}
			<-ctx.Done()
			mu.Lock()
			cause = context.Cause(ctx)
			mu.Unlock()
			return 0, ctx.Err()
		})
		item, ok := errors.AsType[*ItemError](err)
		if !ok || item.Index != 1 || !errors.Is(err, errDown) || got != nil {
			t.Errorf("%v, %v", got, err)
		}
		if elapsed := time.Since(began); elapsed != ms {
			t.Errorf("it took %v", elapsed)
		}
		time.Sleep(2 * time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if slices.Sort(late); !slices.Equal(late, []int{0, 2, 3}) {
			t.Errorf("reported: %v", late)
		}
		if started != 4 || cause != err {
			t.Errorf("%d started, the others were told %v", started, cause)
		}
	})
}

func TestMapEndsWithItsContext(t *testing.T) {
	for _, all := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*ms)
			defer cancel()
			began := time.Now()
			got, err := Map(ctx, MapConfig{Limit: 2, CollectAll: all}, []int{1, 1, 1, 5, 1}, func(_ context.Context, i int) (int, error) {
				time.Sleep(time.Duration(i)*ms + ms) // ignores its context
				return i, nil
			})
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 3*ms {
				t.Error(err, time.Since(began))
			}
			want := []int{1, 1, 0, 0, 0} // the third is still running
			if !all {
				want = nil
			}
			before := slices.Clone(got)
			time.Sleep(time.Second)
			if !slices.Equal(before, got) || !slices.Equal(got, want) {
				t.Errorf("%v, then %v", before, got)
			}
		})
	}
}

// The result was once nil when ctx had ended before the call. A caller that indexes the result by
// element then panics.
func TestMapThatCollectsAllIsAsLongAsItsElementsWhateverEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		never := func(context.Context, int) (int, error) { t.Error("it ran"); return 0, nil }
		for _, n := range []int{0, 1, 20} {
			if got, err := Map(ctx, MapConfig{CollectAll: true}, numbers(n), never); !errors.Is(err, context.Canceled) || len(got) != n || got == nil {
				t.Errorf("%d elements: %v, %v", n, got, err)
			}
			if got, err := Map(ctx, MapConfig{}, numbers(n), never); err != context.Canceled || got != nil {
				t.Errorf("%d elements, only whole: %v, %v", n, got, err)
			}
		}
	})
}

func TestNestedMapsDoNotMultiply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p peak
		var nest func(ctx context.Context, depth int) (int, error)
		nest = func(ctx context.Context, depth int) (int, error) {
			if depth == 0 {
				p.enter()
				defer p.leave()
				time.Sleep(ms)
				return 1, nil
			}
			got, err := Map(ctx, MapConfig{Limit: 4}, []int{depth - 1, depth - 1, depth - 1, depth - 1}, nest)
			sum := 0
			for _, v := range got {
				sum += v
			}
			return sum, err
		}
		if sum, err := nest(t.Context(), 4); sum != 256 || err != nil || p.most > 5 {
			t.Errorf("%d leaves, %v, %d at once", sum, err, p.most)
		}
	})
}

func TestGoexitInMapEndsTheCaller(t *testing.T) {
	exhausted := spent()
	for _, bulkhead := range []*Bulkhead{nil, exhausted} {
		synctest.Test(t, func(t *testing.T) {
			exits := func(context.Context, int) (int, error) { runtime.Goexit(); return 0, nil }
			if returned(func() { _, _ = Map(t.Context(), MapConfig{Bulkhead: bulkhead}, numbers(3), exits) }) {
				t.Error("Map returned")
			}
		})
	}
}

// In the caller, for lack of a goroutine, Map once ran all elements even after ctx had ended. On
// goroutines, an element that noticed the end first once replaced ctx's error by its own.
func TestMapOfACallerWhoLeavesIsTheSameWhereverItRuns(t *testing.T) {
	exhausted := spent()
	for _, bulkhead := range []*Bulkhead{nil, exhausted} {
		for _, all := range []bool{false, true} {
			for _, hears := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), 7*ms)
					defer cancel()
					var mu sync.Mutex
					started := 0
					_, err := Map(ctx, MapConfig{Limit: 2, CollectAll: all, Bulkhead: bulkhead}, numbers(10), func(ctx context.Context, _ int) (int, error) {
						mu.Lock()
						started++
						mu.Unlock()
						if hears {
							<-ctx.Done()
							return 0, fmt.Errorf("query: %w", ctx.Err())
						}
						time.Sleep(10 * ms)
						return 1, nil
					})
					time.Sleep(time.Second)
					synctest.Wait()
					if all {
						joined, ok := err.(interface{ Unwrap() []error })
						if !ok || joined.Unwrap()[len(joined.Unwrap())-1] != context.DeadlineExceeded {
							t.Errorf("hears %v: %v: the caller's deadline is not the last", hears, err)
						}
					} else if err != context.DeadlineExceeded {
						t.Errorf("hears %v: %v", hears, err)
					}
					if started > 2 {
						t.Errorf("hears %v, all %v: %d elements were started, of two at once", hears, all, started)
					}
				})
			}
		}
	}
}

// After Map has failed, the end of an element must have no effect. Its Goexit once raced with the
// caller's read, and could end the caller's goroutine.
func TestALateGoexitInMapIsNobodysEnd(t *testing.T) {
	for range 2000 {
		failed := make(chan struct{})
		var late sync.WaitGroup
		late.Add(1)
		_, err := Map(t.Context(), MapConfig{Limit: 2}, numbers(2), func(ctx context.Context, i int) (int, error) {
			if i == 1 {
				close(failed)
				return 0, errDown
			}
			defer late.Done()
			<-failed
			<-ctx.Done()
			runtime.Gosched()
			runtime.Goexit()
			return 0, nil
		})
		if err == nil {
			t.Fatal("no error")
		}
		late.Wait()
	}
}

// An element was once read without the lock. The read raced with a caller who used the slice again
// after Map had failed.
func TestTheElementsBelongToTheCallerOnceMapHasFailed(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	items := numbers(2)
	_, err := Map(t.Context(), MapConfig{Limit: 2}, items, func(_ context.Context, i int) (int, error) {
		if i == 0 {
			<-release
		}
		return 0, errDown
	})
	if items[0], items[1] = 2, 3; err == nil {
		t.Error("no error")
	}
}
