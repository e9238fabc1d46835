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
	low := spillway.WithPriority(ctx, spillway.Low)
	fn := func(context.Context) (int, error) { return 1, nil }
	for name, f := range map[string]func(){
		"Do":                 func() { _, _ = Do(context.Background(), p, fn) },
		"Do with a context":  func() { _, _ = Do(ctx, p, fn) },
		"Do with a priority": func() { _, _ = Do(low, p, fn) },
		"Submit":             func() { _ = p.Submit(ctx, nothing) },
	} {
		for range 100 {
			f() // starts the workers
		}
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// Merging the labels of the context and the pool allocates.
func TestAllocsOfAJobOfAGroup(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool drop objects")
	}
	p := pool(t, Config{MaxWorkers: 2, QueueSize: 64})
	for name, g := range map[string]*Group{"Group": p.Group(t.Context()), "Collect": p.Collect(t.Context())} {
		submit := func() { _ = g.Submit(nothing) }
		for range 100 {
			submit()
		}
		if n := testing.AllocsPerRun(1000, submit); n != 1 {
			t.Errorf("Submit of a %s: %v allocations, want 1", name, n)
		}
		if err := g.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestAllocsOfAJobWithProfileLabels(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool drop objects")
	}
	p := pool(t, Config{MaxWorkers: 2, QueueSize: 64})
	ctx := pprof.WithLabels(context.Background(), pprof.Labels("patient", "4711"))
	fn := func(context.Context) (int, error) { return 1, nil }
	do := func() { _, _ = Do(ctx, p, fn) }
	for range 100 {
		do()
	}
	if n := testing.AllocsPerRun(1000, do); n > 4 {
		t.Errorf("%v allocations", n)
	}
}
