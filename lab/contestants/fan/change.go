package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/fanout"
	"github.com/spillway-go/spillway/lab/burn"
	"github.com/spillway-go/spillway/lab/fan"
)

// playChange makes the work of all sources slow and then quick again.
func playChange(ctx context.Context, c fan.Change) (map[string]float64, error) {
	var slow atomic.Bool
	quick := burn.For(c.Quick)
	source := func(context.Context, query) (*users, error) {
		if slow.Load() {
			time.Sleep(c.Slow)
		} else {
			quick()
		}
		return &users{}, nil
	}
	f, err := newFanout(sources{source, slices.Repeat([]find{source}, 3)}, fanout.Config{Name: "changing"})
	if err != nil {
		return nil, err
	}
	for range c.Settle {
		if _, err := f.Do(ctx, query{}); err != nil {
			return nil, err
		}
	}
	n, err := until(ctx, f, fanout.Sequential, c.Most)
	if err == nil && n == c.Most {
		err = fmt.Errorf("after %d calls of %v it is not sequential, so that there is nothing to change from", c.Settle+n, c.Quick)
	}
	if err != nil {
		return nil, err
	}
	slow.Store(true)
	toParallel, err := until(ctx, f, fanout.Parallel, c.Most)
	if err != nil {
		return nil, err
	}
	for range c.Settle / 20 { // slow calls take their time
		if _, err := f.Do(ctx, query{}); err != nil {
			return nil, err
		}
	}
	slow.Store(false)
	toSequential, err := until(ctx, f, fanout.Sequential, c.Most)
	return map[string]float64{"to_parallel": float64(toParallel), "to_sequential": float64(toSequential)}, err
}

// until calls until a row of calls is in the right mode, and returns how many it took
// before that row, at most most. One call in the row may be a trial of the other mode.
func until(ctx context.Context, f *fanout.Fanout[query, users], right fanout.Mode, most int) (int, error) {
	const row = 12
	wrong := []int{-1, -1} // when it was in the wrong mode: before the last time, and the last time
	for n := range most {
		if f.Stats().Mode != right {
			wrong = []int{wrong[1], n}
		}
		if _, err := f.Do(ctx, query{}); err != nil {
			return n, err
		}
		if start := n + 1 - row; start > wrong[0] && start >= 0 {
			return start, nil
		}
	}
	return most, nil
}
