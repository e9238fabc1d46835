package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/fanout"
	"github.com/spillway-go/spillway/lab/burn"
)

// mostCalls is how many calls are waited for the right mode.
const mostCalls = 1000

// playChange changes a workload from one that is faster in sequence to one that is
// faster in parallel, and back. It returns how many calls it took until the right mode
// was stable; mostCalls if it never was.
func playChange(ctx context.Context, _ any) (map[string]float64, error) {
	var slow atomic.Bool
	quick := burn.For(500 * time.Nanosecond)
	found := source(func() {
		if slow.Load() {
			time.Sleep(2 * time.Millisecond)
		} else {
			quick()
		}
	}, nil)
	f, err := newFanout(sources{found, slices.Repeat([]find{found}, 3)}, fanout.Config{})
	if err != nil {
		return nil, err
	}
	settle(ctx, f, 2000)
	if until(ctx, f, fanout.Sequential) == mostCalls {
		return nil, fmt.Errorf("quick calls are not sequential after %d, so that there is nothing to change from", 2000+mostCalls)
	}
	slow.Store(true)
	toParallel := until(ctx, f, fanout.Parallel)
	settle(ctx, f, 100)
	slow.Store(false)
	return map[string]float64{"to_parallel": float64(toParallel), "to_sequential": float64(until(ctx, f, fanout.Sequential))}, ctx.Err()
}

func settle(ctx context.Context, f *fanout.Fanout[query, users], calls int) {
	for range calls {
		_, _ = f.Do(ctx, query{}) // fails only if ctx ends
	}
}

// until calls until a row of calls is in the right mode, and returns how many came
// before that row. One call in the row may be a trial of the other mode.
func until(ctx context.Context, f *fanout.Fanout[query, users], right fanout.Mode) int {
	const row = 12
	wrong := [2]int{-1, -1} // the last two calls in the wrong mode
	for n := range mostCalls {
		if f.Stats().Mode != right {
			wrong = [2]int{wrong[1], n}
		}
		settle(ctx, f, 1)
		if start := n + 1 - row; start >= 0 && start > wrong[0] {
			return start
		}
	}
	return mostCalls
}
