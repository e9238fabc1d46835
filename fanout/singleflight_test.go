package fanout

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
)

type requestKey struct{}

func TestTheFirstCallersCancellationHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Singleflight[string, string]
		calls := 0
		work := func(ctx context.Context) (string, error) {
			calls++
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return "", ctx.Err()
			}
			return ctx.Value(requestKey{}).(string), nil
		}
		first, leave := context.WithTimeout(context.WithValue(t.Context(), requestKey{}, "first"), 10*ms)
		defer leave()
		var wg sync.WaitGroup
		began := time.Now()
		wg.Go(func() {
			if _, _, err := g.Do(first, "k", work); err != context.DeadlineExceeded || time.Since(began) != 10*ms {
				t.Errorf("the first: %v after %v", err, time.Since(began))
			}
		})
		synctest.Wait()
		for range 3 {
			wg.Go(func() {
				v, shared, err := g.Do(t.Context(), "k", work)
				if v != "first" || !shared || err != nil || time.Since(began) != time.Second {
					t.Errorf("another: %q, %v, %v after %v", v, shared, err, time.Since(began))
				}
			})
		}
		wg.Wait()
		if calls != 1 || len(g.flights) != 0 {
			t.Errorf("%d calls, %d left", calls, len(g.flights))
		}
	})
}

func TestTheWorkEndsWhenTheLastCallerLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reported := 0
		g := Singleflight[int, int]{OnLate: func(key int, err error) {
			if _, ok := errors.AsType[*spillway.PanicError](err); ok && key == 1 {
				reported++
			}
		}}
		ended := make(chan time.Duration, 2)
		began := time.Now()
		work := func(ctx context.Context) (int, error) {
			<-ctx.Done()
			ended <- time.Since(began)
			if context.Cause(ctx) != errAbandoned {
				t.Error(context.Cause(ctx))
			}
			time.Sleep(time.Hour) // slow to notice the cancellation
			panic("and nobody there")
		}
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*time.Second)
				defer cancel()
				_, _, _ = g.Do(ctx, 1, work)
			})
		}
		wg.Wait()
		if at := <-ended; at != 3*time.Second {
			t.Errorf("ended after %v", at)
		}
		// A later caller gets new work, not the cancelled work.
		v, shared, err := g.Do(t.Context(), 1, func(context.Context) (int, error) { return 2, nil })
		if v != 2 || shared || err != nil {
			t.Error(v, shared, err)
		}
		time.Sleep(2 * time.Hour)
		if synctest.Wait(); reported != 1 {
			t.Errorf("the late panic was reported %d times", reported)
		}
	})
}

func TestAPanicReachesEveryCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Singleflight[int, int]
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				_, shared, err := g.Do(t.Context(), 1, func(context.Context) (int, error) { time.Sleep(ms); panic("oh") })
				if p, ok := errors.AsType[*spillway.PanicError](err); !ok || p.Value != "oh" || !shared {
					t.Error(shared, err)
				}
			})
		}
		wg.Wait()
		for range 4 {
			wg.Go(func() {
				_, _, _ = g.Do(t.Context(), 1, func(context.Context) (int, error) { time.Sleep(ms); runtime.Goexit(); return 0, nil })
				t.Error("Goexit did not end the caller")
			})
		}
		wg.Wait()
	})
}

func TestKeysDoNotShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Singleflight[int, int]
		var wg sync.WaitGroup
		for key := range 10 {
			wg.Go(func() {
				v, shared, err := g.Do(t.Context(), key, func(context.Context) (int, error) { time.Sleep(ms); return key, nil })
				if v != key || shared || err != nil {
					t.Error(v, shared, err)
				}
			})
		}
		wg.Wait()
	})
}

// The group's map once panicked under the group's lock. Each later caller, of any key, then hung
// beyond its deadline.
func TestAKeyThatCannotBeComparedHarmsNoOtherCaller(t *testing.T) {
	type pair struct{ a, b any }
	synctest.Test(t, func(t *testing.T) {
		var g Singleflight[any, int]
		one := func(context.Context) (int, error) { return 1, nil }
		for _, key := range []any{[]int{1}, map[string]int{}, func() {}, pair{"a", []int{1}}, [2]any{1, []int{}}, pair{math.NaN(), []int{1}}} {
			if _, _, err := g.Do(t.Context(), key, func(context.Context) (int, error) { t.Error("it ran"); return 0, nil }); err == nil || !strings.Contains(err.Error(), "cannot be compared") {
				t.Errorf("%T: %v", key, err)
			}
			if v, _, err := g.Do(t.Context(), pair{"a", 2}, one); v != 1 || err != nil {
				t.Errorf("after %T: %v, %v", key, v, err)
			}
		}
		if len(g.flights) != 0 {
			t.Errorf("%d are left", len(g.flights))
		}
	})
}

// A map never finds a NaN key again, so its work once stayed in the map forever.
func TestAKeyThatDoesNotEqualItselfIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Singleflight[any, int]
		var wg sync.WaitGroup
		for range 3 {
			for i, key := range []any{math.NaN(), [2]any{1, math.NaN()}} {
				wg.Go(func() {
					v, shared, err := g.Do(t.Context(), key, func(context.Context) (int, error) { time.Sleep(ms); return i, nil })
					if v != i || shared || err != nil {
						t.Error(v, shared, err)
					}
				})
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), ms)
					defer cancel()
					if _, _, err := g.Do(ctx, key, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }); err != context.DeadlineExceeded {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		if len(g.flights) != 0 {
			t.Errorf("%d are left", len(g.flights))
		}
	})
}
