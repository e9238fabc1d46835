package fanout

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/retrybudget"
)

func TestNewSaysWhatIsWrong(t *testing.T) {
	fine := func(context.Context, int) (uint64, error) { return 1, nil }
	for want, branches := range map[string][]Branch[int, uint64]{
		"there are no branches":     nil,
		`branch "" needs a name`:    {Required("", fine, add)},
		`branch "a" needs a name`:   {Required[int, uint64, uint64]("a", nil, add)},
		`branch "b" needs a name`:   {Optional[int, uint64, uint64]("b", fine, nil)},
		"needs a name":              {{}},
		`two branches "a"`:          {Required("a", fine, add), Optional("a", fine, add)},
		`branch "a": Within is -1s`: {Required("a", fine, add).Within(-time.Second)},
	} {
		if _, err := New(Config{}, branches...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
	if _, err := New(Config{Mode: Parallel + 1}, Required("a", fine, add)); err == nil {
		t.Error("an unknown mode was accepted")
	}
	if _, err := Map(t.Context(), MapConfig{Limit: -1}, numbers(3), fine); err == nil {
		t.Error("a negative limit was accepted")
	}
	for _, n := range []int{-1, maxBulkhead + 1} {
		if _, err := NewBulkhead(n); err == nil {
			t.Errorf("a bulkhead of %d was accepted", n)
		}
	}
}

// Do of a zero or nil Fanout once dereferenced nil, in the middle of a request.
func TestZeroValuesSayWhatToCall(t *testing.T) {
	fine := func(context.Context, int) (uint64, error) { return 1, nil }
	_, bulkheadOfNew := New(Config{Bulkhead: new(Bulkhead)}, Required("a", fine, add))
	_, budgetOfHedge := New(Config{}, Required("a", fine, add).Hedged(new(retrybudget.Budget)))
	_, bulkheadOfMap := Map(t.Context(), MapConfig{Bulkhead: new(Bulkhead)}, numbers(2), fine)
	_, function := Map[int, uint64](t.Context(), MapConfig{}, numbers(2), nil)
	_, _, shared := new(Singleflight[int, uint64]).Do(t.Context(), 1, nil)
	_, zero := new(Fanout[int, uint64]).Do(t.Context(), 1)
	missing, _ := New[int, uint64](Config{})
	_, none := missing.Do(t.Context(), 1)
	for _, c := range []struct {
		err  error
		want string
	}{
		{bulkheadOfNew, "use NewBulkhead"}, {budgetOfHedge, "use retrybudget.New"}, {bulkheadOfMap, "use NewBulkhead"},
		{function, "fn is nil"}, {shared, "fn is nil"}, {zero, "use New"}, {none, "use New"},
	} {
		if c.err == nil || !strings.HasPrefix(c.err.Error(), "fanout") || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want %q", c.err, c.want)
		}
	}
	if s := missing.Stats(); s.Calls != 0 {
		t.Errorf("%+v", s)
	}
}

func TestASingleflightStartsNothingUnderAContextThatHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var g Singleflight[int, uint64]
	if _, _, err := g.Do(ctx, 0, func(context.Context) (uint64, error) { t.Error("started"); return 0, nil }); err != context.Canceled {
		t.Error(err)
	}
}

// Callers share a Fanout whose branches fail, hang, panic, are hedged and run out of goroutines,
// all at once, for the race detector.
func TestManyCallersGetTheirOwnAnswers(t *testing.T) {
	bulkhead, _ := NewBulkhead(40)
	const calls = 100
	for _, mode := range []Mode{Auto, Parallel} {
		synctest.Test(t, func(t *testing.T) {
			branch := func(ctx context.Context, id int) (int, error) {
				switch rand.IntN(40) {
				case 0:
					return 0, errDown
				case 1:
					panic("oh")
				case 2:
					time.Sleep(time.Second) // ignores its context
				case 3:
					<-ctx.Done()
					return 0, ctx.Err()
				default:
					time.Sleep(rand.N(2 * ms))
				}
				return id, nil
			}
			type sum struct{ total, answers int }
			into := func(s *sum, id int) { s.total += id; s.answers++ }
			f := made(t, Config{Mode: mode, Bulkhead: bulkhead},
				Required("a", branch, into), Required("b", branch, into).Within(20*ms),
				Optional("c", branch, into).Hedged(nil), Optional("d", branch, into).Within(10*ms).Hedged(nil))
			var wg sync.WaitGroup
			for caller := range 30 {
				wg.Go(func() {
					for i := range calls {
						id := caller*calls + i + 1
						ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
						got, err := f.Do(ctx, id)
						cancel()
						if err != nil {
							_, named := errors.AsType[*BranchError](err)
							if !named || got.Value != (sum{}) {
								t.Errorf("%v, %v", got, err)
							}
						} else if n := got.Value.answers; got.Value.total != n*id || n+len(got.Missing) != 4 {
							t.Errorf("call %d: %v", id, got)
						}
					}
				})
			}
			wg.Wait()
			time.Sleep(time.Minute)
			synctest.Wait()
			if s := f.Stats(); bulkhead.InUse() != 0 || s.Late != s.LateEnded || s.Calls != 30*calls {
				t.Errorf("%d goroutines are left, %+v", bulkhead.InUse(), s)
			}
		})
	}
}

func TestNumbersAsLargeAsPossibleAreTaken(t *testing.T) {
	fine := func(context.Context, int) (uint64, error) { return 1, nil }
	out, err := Map(t.Context(), MapConfig{Limit: math.MaxInt, CollectAll: true}, numbers(20), fine)
	if err != nil || len(out) != 20 {
		t.Errorf("%d, %v", len(out), err)
	}
	bulkhead, err := NewBulkhead(maxBulkhead)
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []Mode{Auto, Sequential, Parallel} {
		f := made(t, Config{Mode: mode, Bulkhead: bulkhead}, Required("a", fine, add).Within(math.MaxInt64), Optional("b", fine, add).Within(math.MaxInt64))
		for range 100 {
			if got, err := f.Do(t.Context(), 1); err != nil || got.Value != 2 || got.Missing != nil {
				t.Fatalf("%v: %+v, %v", mode, got, err)
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
	return made(tb, cfg, branches...)
}

// made returns a Fanout.
func made[Req, Res any](t testing.TB, cfg Config, branches ...Branch[Req, Res]) *Fanout[Req, Res] {
	t.Helper()
	f, err := New(cfg, branches...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// spent returns a bulkhead of which no goroutine is left.
func spent() *Bulkhead {
	b, _ := NewBulkhead(1)
	b.take()
	return b
}

// returned runs f as the goroutine of a caller, and reports whether f returned.
func returned(f func()) (is bool) {
	var caller sync.WaitGroup
	caller.Go(func() {
		f()
		is = true
	})
	caller.Wait()
	return is
}
