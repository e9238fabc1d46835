package workerpool

import (
	"context"
	"runtime/pprof"
	"testing"

	"github.com/spillway-go/spillway"
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

func TestAllocsOfWorkThatIsDone(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool drop objects")
	}
	p := pool(t, Config{MaxWorkers: 2, QueueSize: 64})
	ctx := t.Context()
	do := func(ctx context.Context) func() {
		return func() { _, _ = Do(ctx, p, func(context.Context) (int, error) { return 1, nil }) }
	}
	for name, c := range map[string]struct {
		f    func()
		most float64
	}{
		"Do":                 {do(context.Background()), 0},
		"Do with a context":  {do(ctx), 0},
		"Do with a priority": {do(spillway.WithPriority(ctx, spillway.Low)), 0},
		"Do with labels":     {do(pprof.WithLabels(ctx, pprof.Labels("patient", "4711"))), 4}, // merges them with the pool's
		"Submit":             {func() { _ = p.Submit(ctx, nothing) }, 0},
	} {
		for range 100 {
			c.f() // starts the workers
		}
		if n := testing.AllocsPerRun(1000, c.f); n > c.most {
			t.Errorf("%s: %v allocations, want at most %v", name, n, c.most)
		}
	}
}
