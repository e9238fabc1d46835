package overload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/priority"
	"golang.org/x/sync/semaphore"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/workerpool"
)

// The contestants.
const (
	None         = "none"          // every request goes straight through
	Semaphore    = "semaphore"     // x/sync/semaphore of the right size; who finds it taken waits as long as its deadline allows
	SemaphoreTry = "semaphore-try" // the same size; who finds it taken is refused
	SemaphoreBig = "semaphore-4x"  // x/sync/semaphore, four times too large
	WorkerPool   = "workerpool"    // as many workers as the database has slots, the default queue, refused when that is full
	Failsafe     = "failsafe"      // the best published adaptive limiter
	Spillway     = "spillway"      // limiter.Config{}: no number at all
)

// Names lists the contestants. Those before Failsafe and after None were told
// the size of the database, which an operator has to guess.
func Names() []string {
	return []string{None, Semaphore, SemaphoreTry, SemaphoreBig, WorkerPool, Failsafe, Spillway}
}

// Guard stands before a database and decides what may ask it.
type Guard struct {
	admit func(ctx context.Context, fn func(context.Context) error) error
	limit func() int    // nil: there is none
	state func() string // nil: it has none
	close func()

	waiting, running atomic.Int64
}

// NewGuard returns the contestant of that name in front of a database with that
// many slots. Close it.
func NewGuard(name string, slots int) (*Guard, error) {
	switch name {
	case None:
		return &Guard{admit: func(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }}, nil
	case Semaphore:
		return weighted(slots, (*semaphore.Weighted).Acquire), nil
	case SemaphoreBig:
		return weighted(4*slots, (*semaphore.Weighted).Acquire), nil
	case SemaphoreTry:
		return weighted(slots, func(s *semaphore.Weighted, _ context.Context, n int64) error {
			if !s.TryAcquire(n) {
				return errRefused
			}
			return nil
		}), nil
	case WorkerPool:
		return pooled(slots)
	case Failsafe:
		return failsafe(), nil
	case Spillway:
		return ours()
	}
	return nil, fmt.Errorf("unknown contestant %q: known are %s", name, strings.Join(Names(), ", "))
}

// Do runs fn if and when the contestant lets it. A refusal matches
// spillway.ErrRejected, whoever refused.
func (g *Guard) Do(ctx context.Context, fn func(context.Context) error) error {
	g.waiting.Add(1)
	var decided atomic.Bool
	decide := func() {
		if decided.CompareAndSwap(false, true) {
			g.waiting.Add(-1)
		}
	}
	defer decide()
	return g.admit(ctx, func(ctx context.Context) error {
		decide()
		g.running.Add(1)
		defer g.running.Add(-1)
		return fn(ctx)
	})
}

// Close releases what the contestant holds.
func (g *Guard) Close() {
	if g.close != nil {
		g.close()
	}
}

// Limit is how much the contestant lets run at once, 0 if it does not say.
func (g *Guard) Limit() int {
	if g.limit == nil {
		return 0
	}
	return g.limit()
}

// State is what the contestant says about itself; empty if nothing.
func (g *Guard) State() string {
	if g.state == nil {
		return ""
	}
	return g.state()
}

// Running counts what was let through and is not done.
func (g *Guard) Running() int { return int(g.running.Load()) }

// Waiting counts who has neither been let through nor refused.
func (g *Guard) Waiting() int { return int(g.waiting.Load()) }

// errRefused stands for the refusal of a contestant that has no words for it.
var errRefused = &spillway.Rejection{Reason: spillway.QueueFull}

func weighted(size int, acquire func(*semaphore.Weighted, context.Context, int64) error) *Guard {
	s := semaphore.NewWeighted(int64(size))
	return &Guard{
		limit: func() int { return size },
		admit: func(ctx context.Context, fn func(context.Context) error) error {
			if err := acquire(s, ctx, 1); err != nil {
				return err
			}
			defer s.Release(1)
			return fn(ctx)
		},
	}
}

func pooled(workers int) (*Guard, error) {
	pool, err := workerpool.New(workerpool.Config{MaxWorkers: workers, MaxWait: -1})
	if err != nil {
		return nil, err
	}
	return &Guard{
		limit: func() int { return workers },
		close: pool.Close,
		admit: func(ctx context.Context, fn func(context.Context) error) error {
			_, err := workerpool.Do(ctx, pool, func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) })
			return err
		},
	}, nil
}

// calibrateEvery is how often failsafe-go's prioritizer looks at its queue.
const calibrateEvery = 100 * time.Millisecond

// failsafe is the adaptive limiter of failsafe-go with everything at its
// defaults. Of the published adaptive limiters for Go that can be had it is the
// one to beat: it is maintained, and it alone knows priorities. What it answers in
// front of this database, "spillway lab overload" tells.
func failsafe() *Guard {
	prioritizer := adaptivelimiter.NewPrioritizer()
	lim := adaptivelimiter.NewBuilder[any]().BuildPrioritized(prioritizer)
	return &Guard{
		limit: lim.Limit,
		close: prioritizer.ScheduleCalibrations(context.Background(), calibrateEvery),
		admit: func(ctx context.Context, fn func(context.Context) error) error {
			level := priority.Low
			if spillway.PriorityFrom(ctx) == spillway.Critical {
				level = priority.VeryHigh
			}
			permit, err := lim.AcquirePermitWithPriority(ctx, level)
			switch {
			case errors.Is(err, adaptivelimiter.ErrExceeded):
				return errRefused
			case err != nil:
				return err
			}
			err = fn(ctx)
			if ctx.Err() != nil {
				permit.Drop() // as its own executor does with work that was cut off
			} else {
				permit.Record()
			}
			return err
		},
	}
}

func ours() (*Guard, error) {
	lim, err := limiter.New(limiter.Config{})
	if err != nil {
		return nil, err
	}
	return &Guard{
		admit: lim.Do,
		limit: lim.Limit,
		state: func() string { return lim.Stats().State },
		close: lim.Close,
	}, nil
}
