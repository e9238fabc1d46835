package objectpool

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func newTier[T any](budget int) *tier[T] {
	var left atomic.Int64
	left.Store(toShare(budget))
	t := new(tier[T])
	t.init(budget, &left)
	return t
}

// get and put do the steps that a Pool does with its tier.
func (t *tier[T]) get() *T {
	i := t.enter()
	x := t.take(i)
	t.leave(i)
	if x == nil {
		x = t.pop()
	}
	return x
}

func (t *tier[T]) put(x *T, size int) bool {
	i := t.enter()
	kept := t.keep(i, x, size)
	t.leave(i)
	if kept = kept || t.push(x, size); kept && !t.timed.Load() {
		t.watch()
	}
	return kept
}

// burst uses n objects at once, and returns how many of them had to be made.
func burst(t *tier[[64]byte], n int) (created int) {
	var all []*[64]byte
	for range n {
		x := t.get()
		if x == nil {
			x = new([64]byte)
			created++
		}
		all = append(all, x)
	}
	for _, x := range all {
		t.put(x, 64)
	}
	return created
}

func TestBurstsFindTheirObjectsAgainAfterCollections(t *testing.T) {
	tier := newTier[[64]byte](1 << 20)
	burst(tier, 1000)
	for range 3 {
		runtime.GC()
		runtime.GC()
		// Objects that another processor keeps are not found.
		if created, most := burst(tier, 1000), localCount*len(tier.locals); created > most {
			t.Fatalf("made %d objects again, want at most %d", created, most)
		}
	}
	if held := tier.held(); held > 1000*5/4 {
		t.Errorf("%d objects are held after peaks of 1000", held)
	}
}

func TestAnIdleTierLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tier := newTier[[64]byte](1 << 20)
		burst(tier, 1000)
		time.Sleep(60*time.Second + 1)
		if held := tier.held(); held > 100 {
			t.Errorf("%d of 1000 objects are held after 60 s without use", held)
		}
		time.Sleep(60 * time.Second)
		if held := tier.held(); held != 0 || tier.timed.Load() {
			t.Errorf("after two minutes %d objects are held, timer %v", held, tier.timed.Load())
		}
		if got := tier.left.Load(); got != toShare(1<<20) {
			t.Errorf("%d bytes of the budget are left of %d, though nothing is held", got, toShare(1<<20))
		}
		burst(tier, 10)
		time.Sleep(2 * time.Minute)
		if held := tier.held(); held != 0 {
			t.Errorf("used again, it still holds %d", held)
		}
	})
}

func TestAPeakThatComesBackKeepsItsObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tier := newTier[[64]byte](1 << 20)
		burst(tier, 1000)
		created := 0
		for range 300 { // two minutes
			time.Sleep(400 * time.Millisecond)
			created += burst(tier, 1000)
		}
		if most := 300 * 1000 / 200; created > most {
			t.Errorf("made %d of 300000, want at most %d", created, most)
		}
		for range 300 {
			time.Sleep(400 * time.Millisecond)
			burst(tier, 100)
		}
		if held, most := tier.held(), 125+localCount*len(tier.locals); held > most {
			t.Errorf("%d objects are held though the recent peak is 100, want at most %d", held, most)
		}
	})
}

func TestTheBudgetBoundsWhatIsHeld(t *testing.T) {
	for _, c := range []struct{ budget, size int }{
		{1 << 20, 100}, {1 << 20, 5000}, {1 << 20, 100_000}, {1000, 100}, {0, 64}, {-1, 64},
	} {
		tier := newTier[[64]byte](c.budget)
		for range 20_000 {
			tier.put(new([64]byte), c.size)
		}
		// Only the shared objects were once counted.
		for i := range tier.locals {
			for tier.keep(i, new([64]byte), c.size) {
			}
		}
		if held, most := tier.held()*c.size, max(c.budget, 0); held > most {
			t.Errorf("budget %d, objects of %d: %d bytes are held", c.budget, c.size, held)
		}
	}
}

// TestNobodyGetsWhatSomebodyElseHas mixes all operations with changes of the number of processors
// and the ends of windows.
func TestNobodyGetsWhatSomebodyElseHas(t *testing.T) {
	type owned struct{ by atomic.Int32 }
	tier := newTier[owned](4000)
	procs := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(procs)
	var gets, puts, created, refused atomic.Int64
	var wg sync.WaitGroup
	for g := range int32(32) {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			var mine []*owned
			for i := range 3000 {
				switch {
				case g == 0 && i%500 == 0:
					runtime.GOMAXPROCS(1 + random.IntN(2*procs+2))
				case g == 1 && i%50 == 0:
					tier.trim()
				case len(mine) == 0 || random.IntN(2) == 0:
					x := tier.get()
					gets.Add(1)
					if x == nil {
						x = new(owned)
						created.Add(1)
					}
					if !x.by.CompareAndSwap(0, g+1) {
						t.Errorf("an object of %d was given to %d", x.by.Load()-1, g)
					}
					mine = append(mine, x)
				default:
					last := len(mine) - 1
					mine[last].by.Store(0)
					if !tier.put(mine[last], 8) {
						refused.Add(1)
					}
					puts.Add(1)
					mine = mine[:last]
				}
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
	// Calls beyond the locals are counted by the Pool.
	if n := tier.tally(); n.gets > uint64(gets.Load()) || n.puts > uint64(puts.Load()) {
		t.Errorf("%+v of %d gets and %d puts", n, gets.Load(), puts.Load())
	}
	if spent := toShare(4000) - tier.left.Load(); int(spent) != 8*len(tier.shared) {
		t.Errorf("%d bytes of the budget are spent on %d objects of 8", spent, len(tier.shared))
	}
}

// Twice the largest budget once overflowed to below zero. All of the budget was then shared, beside
// the objects that processors keep.
func TestTheLargestBudgetIsSharedInPart(t *testing.T) {
	for _, budget := range []int{0, 1 << 20, math.MaxInt/4*3 + 1, math.MaxInt} {
		if got := toShare(budget); got < int64(budget/4*3) || got > int64(budget/4*3)+3 {
			t.Errorf("%d of %d bytes", got, budget)
		}
	}
	if got := toShare(-1); got != 0 {
		t.Errorf("%d of none", got)
	}
	p := New(Config[[64]byte]{MaxIdleBytes: math.MaxInt, MaxSize: math.MaxInt})
	p.Put(p.Get())
	b := NewBuffers(BuffersConfig{MaxIdleBytes: math.MaxInt, MaxSize: math.MaxInt})
	b.Put(b.Get(1 << 10))
}
