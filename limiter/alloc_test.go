package limiter

import (
	"context"
	"testing"
)

func TestAllocsOfAcquireAndDone(t *testing.T) {
	l := fixed(t, 1, 1)
	ctx := context.Background()
	acquire(t, l).Done(nil)
	if n := testing.AllocsPerRun(1000, func() {
		p, _ := l.Acquire(ctx)
		p.Done(nil)
		p.Release()
	}); n != 0 {
		t.Errorf("acquire and done of a free permit: %v allocations", n)
	}
	work := func(context.Context) error { return nil }
	if n := testing.AllocsPerRun(1000, func() { _ = l.Do(ctx, work) }); n != 0 {
		t.Errorf("Do: %v allocations", n)
	}
}

func TestAllocsOfARejection(t *testing.T) {
	l := fixed(t, 1, -1)
	ctx := context.Background()
	defer acquire(t, l).Release()
	_, _ = l.Acquire(ctx)
	for name, try := range map[string]func(context.Context) (Permit, error){"Acquire": l.Acquire, "TryAcquire": l.TryAcquire} {
		if n := testing.AllocsPerRun(1000, func() { _, _ = try(ctx) }); n != 0 {
			t.Errorf("immediate rejection by %s: %v allocations", name, n)
		}
	}
}
