package limiter

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// Two hundred limiters, one for each route and dependency, are nothing.
func TestALimiterAtRestIsSmallAndHasNoGoroutine(t *testing.T) {
	const many = 200
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	all := make([]*Limiter, 0, many)
	goroutines, before := runtime.NumGoroutine(), heap()
	for range many {
		l := configured(t, Config{})
		for range 500 { // its law, its histograms and its slots have been used
			p := acquire(t, l)
			q := acquire(t, l)
			p.Done(nil)
			q.Done(context.DeadlineExceeded)
		}
		all = append(all, l)
	}
	each := (int64(heap()) - int64(before)) / many
	if each > 16<<10 {
		t.Errorf("%d bytes each, want at most 16 KB", each)
	}
	t.Logf("%d bytes each", each)
	if got := runtime.NumGoroutine(); got > goroutines {
		t.Errorf("%d goroutines more", got-goroutines)
	}
	runtime.KeepAlive(all)
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
		l.mu.Lock()
		n := l.gate.Queued()
		l.mu.Unlock()
		if n > 0 {
			p.Done(nil)
			return
		}
		runtime.Gosched()
	}
}
