package fan

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/fanout"
	"github.com/spillway-go/spillway/lab/burn"
)

// change is a workload that changes from one that is faster in sequence to one that
// is faster in parallel, and back.
type change struct {
	Sources     int
	Quick, Slow time.Duration // computed, and slept
	Settle      int           // calls before a change
	Most        int           // calls to wait for the right mode
}

// changed is how many calls it took until the right mode was stable; Most if it never
// was.
type changed struct{ ToParallel, ToSequential float64 }

// stays is how many of a row of calls must be in the right mode. One in the row
// may be a trial of the other.
const row, stays = 12, 11

func playChange(ctx context.Context, c change) (out changed, err error) {
	var slow atomic.Bool
	quick := burn.For(c.Quick)
	found := &users{list: []user{{ID: 1}}}
	source := func(context.Context, query) (*users, error) {
		if slow.Load() {
			time.Sleep(c.Slow)
		} else {
			quick()
		}
		return found, nil
	}
	s := sources{Database: source}
	for range c.Sources - 1 {
		s.Caches = append(s.Caches, source)
	}
	f, err := newFanout(s, fanout.Config{Name: "changing"})
	if err != nil {
		return out, err
	}
	until := func(right fanout.Mode) (float64, error) {
		var modes []bool
		for n := range c.Most {
			modes = append(modes, f.Stats().Mode == right)
			if _, err := f.Do(ctx, query{}); err != nil {
				return 0, err
			}
			good := 0
			for _, ok := range modes[max(0, n+1-row):] {
				if ok {
					good++
				}
			}
			if good >= stays && len(modes) >= row {
				return float64(n + 1 - row), nil
			}
		}
		return float64(c.Most), nil
	}
	settle := func() error {
		for range c.Settle {
			if _, err := f.Do(ctx, query{}); err != nil {
				return err
			}
		}
		return nil
	}
	if err := settle(); err != nil {
		return out, err
	}
	if f.Stats().Mode != fanout.Sequential {
		n, err := until(fanout.Sequential)
		if err == nil && n >= float64(c.Most) {
			err = fmt.Errorf("after %d calls of %v it is not sequential: there is nothing to change from", c.Settle+c.Most, c.Quick)
		}
		if err != nil {
			return out, err
		}
	}
	slow.Store(true)
	if out.ToParallel, err = until(fanout.Parallel); err != nil {
		return out, err
	}
	for range c.Settle / 20 { // slow calls take their time
		if _, err := f.Do(ctx, query{}); err != nil {
			return out, err
		}
	}
	slow.Store(false)
	out.ToSequential, err = until(fanout.Sequential)
	return out, err
}
