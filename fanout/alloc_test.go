package fanout

import (
	"context"
	"testing"
)

// TestAllocs counts the allocations of a call whose branches do nothing.
func TestAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool drops objects under the race detector")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	run := func(context.Context, int) (uint64, error) { return 1, nil }
	readsContext := func(ctx context.Context, _ int) (uint64, error) { return 1, ctx.Err() }
	for _, c := range []struct {
		name string
		cfg  Config
		run  func(context.Context, int) (uint64, error)
		want float64
	}{
		{"sequential", Config{Mode: Sequential}, run, 0},
		{"sequential that looks at its context", Config{Mode: Sequential}, readsContext, 0},
		{"parallel", Config{Mode: Parallel}, run, 1}, // the context, which a branch may keep
		{"parallel that looks at its context", Config{Mode: Parallel}, readsContext, 1},
	} {
		for _, n := range []int{1, 2, 3, 8} {
			f := same(t, c.cfg, n, c.run)
			for range 100 {
				_, _ = f.Do(ctx, 1)
			}
			if got := testing.AllocsPerRun(1000, func() {
				if res, err := f.Do(ctx, 1); err != nil || res.Value != uint64(n) {
					t.Fatal(res, err)
				}
			}); got != c.want {
				t.Errorf("%s, %d branches: %v allocations, want %v", c.name, n, got, c.want)
			}
		}
	}
}

// A failure allocates the error with the branch's name and the list of missing branches.
func TestAllocsOfFailures(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool drops objects under the race detector")
	}
	fine := func(context.Context, int) (uint64, error) { return 1, nil }
	fails := func(context.Context, int) (uint64, error) { return 0, errDown }
	for _, mode := range []Mode{Sequential, Parallel} {
		for _, required := range []bool{false, true} {
			second, want := Optional("b", fails, add), 1.0
			if required {
				second, want = Required("b", fails, add), 2
			}
			if mode == Parallel {
				want++ // the context
				if required {
					want++ // the cause with which the other branches are cancelled
				}
			}
			f := made(t, Config{Mode: mode}, Required("a", fine, add), second)
			ctx := t.Context()
			if got := testing.AllocsPerRun(1000, func() { _, _ = f.Do(ctx, 1) }); got != want {
				t.Errorf("%v, required %v: %v allocations, want %v", mode, required, got, want)
			}
		}
	}
}
