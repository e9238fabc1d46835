package limiter

import (
	"context"
	"testing"

	"github.com/spillway-go/spillway"
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
	if n := testing.AllocsPerRun(1000, func() {
		p, _ := l.AcquireWith(ctx, Request{Kind: "GET /orders/{id}"})
		p.Done(nil)
	}); n != 0 {
		t.Errorf("acquire and done of a kind that is told: %v allocations", n)
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
		for _, ctx := range []context.Context{ctx, spillway.WithKind(ctx, "GET /orders/{id}")} {
			if n := testing.AllocsPerRun(1000, func() { _, _ = try(ctx) }); n != 0 {
				t.Errorf("immediate rejection by %s: %v allocations", name, n)
			}
		}
	}
}
