package fanout

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// One call in a hundred has a branch that ignores its context and returns a big value after its
// caller has left. No other call may see any part of the value. When these branches have ended,
// nothing of them is left.
func TestLateBranchesHarmNobody(t *testing.T) {
	const calls = 50_000
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
		bulkhead, _ := NewBulkhead(1 << 20)
		f := made(t, Config{Mode: Parallel, Bulkhead: bulkhead},
			Required("a", quick, func(a *answer, v int) { a.sum += v; a.answers++ }),
			Required("b", branch, into), Optional("c", branch, into))
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
				} else if err != nil || got.Value != (answer{id * 129, 3}) || got.Missing != nil {
					t.Fatalf("call %d: %+v, %v", id, got, err)
				}
			}
			hang.L.Lock()
			released++
			hang.L.Unlock()
			hang.Broadcast()
			synctest.Wait()
			if n := bulkhead.InUse(); n != 0 {
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
		if s := f.Stats(); s.Late != s.LateEnded || s.Failed != calls/100 || s.Calls != calls {
			t.Errorf("%+v", s)
		}
	})
}

// A late branch keeps its frame. The frame once kept the answers of the whole call for as long.
func TestALateBranchKeepsNoAnswerOfOthers(t *testing.T) {
	for name, err := range map[string]error{"success": nil, "failure": errDown} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), ms)
			defer cancel()
			f, newErr := New(Config{Mode: Parallel},
				Required("database", after(ms/2, err, "ann").ask, merge), // settled after the index
				Optional("index", after(0, nil, "bob").ask, merge),
				Optional("cache", deaf(time.Hour).ask, merge))
			if newErr != nil {
				t.Fatal(newErr)
			}
			fr := newFrame(f)
			got, doErr := fr.parallel(ctx, "", false, false)
			if (doErr == nil) != (err == nil) || doErr == nil && len(got.Value) != 2 {
				t.Errorf("%s: %v, %v", name, got, doErr)
			}
			if fr.res != nil {
				t.Errorf("%s: the frame keeps %v", name, fr.res)
			}
			for i, s := range fr.slots[:2] {
				if v := s.(*typed[string, []string, []string]).values; v[0] != nil && fr.states[i].err == nil {
					t.Errorf("%s: slot %d keeps %v", name, i, v[0])
				}
			}
			time.Sleep(2 * time.Hour) // the late branch ends
		})
	}
}

// A frame in the pool keeps nothing of its last call, so no other caller can get an answer of that
// call: neither of the attempt that won, nor of the one that lost, nor of one that failed.
func TestAFrameInThePoolKeepsNoAnswer(t *testing.T) {
	for name, database := range map[string]source{"success": after(2*ms, nil, "ann"), "failure": after(2*ms, errDown, "ann")} {
		synctest.Test(t, func(t *testing.T) {
			f := newLookup(t, Config{Mode: Parallel}, database, after(ms, errDown, "bob"))
			fr := newFrame(f)
			fr.slots[0].(*typed[string, []string, []string]).values[1] = []string{"of the attempt that lost"}
			_, _ = fr.parallel(t.Context(), "eve", false, false)
			synctest.Wait()
			for i, s := range fr.slots {
				if v := s.(*typed[string, []string, []string]).values; v[0] != nil || v[1] != nil {
					t.Errorf("%s: slot %d keeps %v", name, i, v)
				}
			}
			if fr.req != "" || fr.res != nil || fr.parent != nil || fr.ctx != nil || fr.failure != nil || fr.cut != nil {
				t.Errorf("%s: the frame keeps something", name)
			}
		})
	}
}

// The result of a branch whose caller's context has ended reaches OnLate, wherever the branch ran:
// a panic is not lost because the caller was cancelled first.
func TestWhatComesTooLateIsReported(t *testing.T) {
	exhausted := spent()
	for name, cfg := range map[string]Config{
		"beside the caller": {Mode: Parallel}, "in the caller": {Mode: Sequential}, "without a token": {Mode: Parallel, Bulkhead: exhausted},
	} {
		for outcome, late := range map[string]source{"panic: nil map": panics(time.Second), "down": fails(time.Second), "answered too late": deaf(time.Second, "x")} {
			synctest.Test(t, func(t *testing.T) {
				var reported []string
				cfg.OnLate = func(e *BranchError) { reported = append(reported, firstLine(e)) }
				f := newLookup(t, cfg, late, after(ms, nil))
				ctx, cancel := context.WithTimeout(t.Context(), 10*ms)
				defer cancel()
				_, _ = f.Do(ctx, "")
				time.Sleep(2 * time.Second)
				synctest.Wait()
				s := f.Stats()
				if want := "fanout: branch database: " + outcome; !slices.Equal(reported, []string{want}) || s.Late != 1 || s.LateEnded != 1 || (s.LatePanics == 1) != strings.HasPrefix(outcome, "panic") {
					t.Errorf("%s: reported %q, want %q; %+v", name, reported, want, s)
				}
			})
		}
	}
}

// Without a token, all branches run in the caller, one after the other, with the same results as in
// sequential mode.
func TestRandomCallsDoWhatTheirTwinSays(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 3000 {
		data := make([]byte, 2+rng.IntN(20))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		p := parse(data)
		synctest.Test(t, func(t *testing.T) {
			p.exhausted = p.mode == Sequential && rng.IntN(2) == 0
			if got, want := p.live(t), p.twin(); got != want {
				t.Fatalf("%+v:\n got %+v\nwant %+v", p, got, want)
			}
		})
	}
}
