package workerpool

import (
	"context"
	"testing"
)

func TestAllocsOfARefusal(t *testing.T) {
	p := pool(t, Config{MaxWorkers: 1, QueueSize: -1, MaxWait: -1})
	hold := make(chan struct{})
	defer close(hold)
	if err := p.Submit(t.Context(), func(context.Context) error { <-hold; return nil }); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for name, try := range map[string]func(context.Context, Job) error{"Submit": p.Submit, "TrySubmit": p.TrySubmit} {
		if n := testing.AllocsPerRun(1000, func() { _ = try(ctx, nothing) }); n != 0 {
			t.Errorf("immediate rejection by %s: %v allocations", name, n)
		}
	}
}
