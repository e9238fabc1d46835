package limiter

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// Hundreds of limiters, one for each route and dependency, cost little, also after a heavy
// load.
func TestALimiterAtRestIsSmallAndHasNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 100
		heap := func() int64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		r := rand.New(rand.NewPCG(1, 1))
		work := func() func(context.Context) error {
			takes := time.Duration(20 * math.Exp(0.5*r.NormFloat64()) * float64(time.Millisecond))
			return func(context.Context) error { time.Sleep(takes); return nil }
		}
		all := make([]*Limiter, 0, many)
		var before int64
		for i := range many + 1 {
			if i == 1 { // the first limiter's garbage belongs to the test
				all, before = all[:0], heap()
			}
			l := configured(t, Config{})
			for range 300 { // overload
				takes := work()
				go func() { _ = l.Do(t.Context(), takes) }()
				time.Sleep(time.Millisecond)
				if l.Limit() > 10 {
					_ = l.SetBounds(0, 10)
				}
			}
			time.Sleep(time.Minute)
			_ = l.Do(t.Context(), work())
			all = append(all, l)
		}
		synctest.Wait()
		each := (heap() - before) / many
		t.Logf("%d bytes each", each)
		if each > 18<<10 {
			t.Errorf("%d bytes each, want at most 18 KB", each)
		}
		// No limiter is closed: the bubble would not end if a limiter had a goroutine.
		for _, l := range all {
			if l.running.nFree > spareSlots || l.waiters.n > spareWaiters {
				t.Fatalf("%d slots and %d waiters are kept", l.running.nFree, l.waiters.n)
			}
			atRest(t, l)
		}
	})
}

func TestAllocsOfAWait(t *testing.T) {
	l := fixed(t, 1, 1)
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for _, ctx := range []context.Context{ctx, context.Background()} {
		handOver(t, l, ctx)
		if n := testing.AllocsPerRun(1000, func() { handOver(t, l, ctx) }); n > 2 {
			t.Errorf("a waiting Acquire: %v allocations", n)
		}
	}
}

// handOver makes one caller wait for another's slot.
func handOver(tb testing.TB, l *Limiter, ctx context.Context) {
	p := acquire(tb, l)
	go endWhenSomebodyWaits(l, p)
	q, err := l.Acquire(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	q.Done(nil)
}

func endWhenSomebodyWaits(l *Limiter, p Permit) {
	for {
		l.lock(l.now())
		n := l.gate.Queued()
		l.unlock()
		if n > 0 {
			p.Done(nil)
			return
		}
		runtime.Gosched()
	}
}
