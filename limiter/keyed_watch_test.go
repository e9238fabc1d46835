package limiter

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
)

// graves are the limiters that have left a family.
type graves struct {
	mu   sync.Mutex
	of   map[*Limiter]bool
	done uint64 // work completed by the limiters that have left
	t    *testing.T
}

func (g *graves) evicted(key string, l *Limiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of[l] || l.Name() != key {
		g.t.Errorf("the limiter of %q leaves twice, or under the key %q", l.Name(), key)
	}
	g.of[l] = true
	g.done += l.Stats().Completed
}

// sum returns the completed work of the current limiters and of those that have left.
func (g *graves) sum(w *keyedWatch) (done uint64) {
	before := uint64(0)
	for key, l := range w.all() {
		g.mu.Lock()
		if g.of[l] {
			g.t.Errorf("the limiter of %q is there and has left", key)
		}
		before = g.done // the same throughout the loop
		g.mu.Unlock()
		done += l.Stats().Completed
	}
	return before + done
}

// Keys evict each other all the time while readers watch. Each limiter, with its completed work,
// is either current or has left.
func TestAWatchSeesEveryLimiterOnce(t *testing.T) {
	k := family(t, 4)
	g := &graves{of: map[*Limiter]bool{}, t: t}
	watch := k.watch(g.evicted)
	const callers, each = 4, 400
	var all, readers sync.WaitGroup
	end := make(chan struct{})
	for c := range callers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 7))
			for range each {
				_ = k.Do(t.Context(), fmt.Sprint(r.IntN(30)), nothing)
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for last := uint64(0); ; {
				now := g.sum(watch)
				if now < last {
					t.Errorf("%d were done, and before it were %d", now, last)
				}
				last = now
				select {
				case <-end:
					return
				default:
				}
			}
		})
	}
	all.Wait()
	close(end)
	readers.Wait()
	if n := g.sum(watch); n != callers*each {
		t.Errorf("%d were done, want %d", n, callers*each)
	}
}

// A family keeps only a few of the limiters that have left if its watch is never read.
func TestAWatchThatNobodyReadsKeepsFewLimiters(t *testing.T) {
	k := family(t, 2)
	g := &graves{of: map[*Limiter]bool{}, t: t}
	watch := k.watch(g.evicted)
	for i := range 10 * mostGone {
		_ = k.Do(t.Context(), fmt.Sprint(i), nothing)
		if n := len(watch.gone); n > mostGone {
			t.Fatalf("%d limiters that have left are kept, want at most %d", n, mostGone)
		}
	}
	if n := len(g.of); n < 8*mostGone {
		t.Errorf("%d have left", n)
	}
}

func TestAPanicOfEvictedHidesNoOtherLimiter(t *testing.T) {
	k := family(t, 1)
	var told []string
	watch := k.watch(func(key string, _ *Limiter) {
		told = append(told, key)
		if key == "b" {
			panic("a bug")
		}
	})
	for _, key := range []string{"a", "b", "c", "d"} {
		_ = k.Do(t.Context(), key, nothing)
	}
	look := func() (there string) {
		defer func() {
			if recover() != nil {
				there = "a panic"
			}
		}()
		for key := range watch.all() {
			there += key
		}
		return there
	}
	first, second := look(), look()
	if first != "a panic" || second != "d" || fmt.Sprint(told) != "[a b c]" {
		t.Errorf("first %s, then %s; told of %v", first, second, told)
	}
}

func TestTheFamilyKeepsNoWatchThatNobodyHas(t *testing.T) {
	k := family(t, 1)
	func() { k.watch(func(string, *Limiter) { t.Error("told nobody") }) }()
	kept := k.watch(func(string, *Limiter) {})
	runtime.GC()
	_ = k.Do(t.Context(), "a", nothing)
	_ = k.Do(t.Context(), "b", nothing)
	if len(k.watches) != 1 || len(kept.gone) != 1 {
		t.Errorf("%d watches, and %d limiters for the one that is left", len(k.watches), len(kept.gone))
	}
	runtime.KeepAlive(kept)
}
