package overload

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/workerpool"
)

// The contestants.
const (
	None         = "none"          // every request goes straight through
	Semaphore    = "semaphore"     // x/sync/semaphore of the right size; a request waits for a slot until its deadline
	SemaphoreTry = "semaphore-try" // the same size; a request without a free slot is refused
	SemaphoreBig = "semaphore-4x"  // x/sync/semaphore, four times too large
	WorkerPool   = "workerpool"    // as many workers as the database has slots, the default queue, refused when that is full
	Failsafe     = "failsafe"      // the best published adaptive limiter
	Spillway     = "spillway"      // limiter.Config{}: no configuration
)

// Names lists the contestants. Those before Failsafe and after None are configured
// with the size of the database, which an operator has to guess.
func Names() []string {
	return []string{None, Semaphore, SemaphoreTry, SemaphoreBig, WorkerPool, Failsafe, Spillway}
}

// Guard is in front of a database and decides which requests it gets.
type Guard struct {
	admit func(ctx context.Context, fn func(context.Context) error) error
	limit func() int    // nil: none
	state func() string // nil: none
	close func()

	waiting, running atomic.Int64
}

// NewGuard returns the contestant of that name in front of a database with that
// many slots. Close it. Only program has Failsafe.
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
				return ErrRefused
			}
			return nil
		}), nil
	case WorkerPool:
		return pooled(slots)
	case Spillway:
		return ours()
	}
	if name == Failsafe {
		return nil, fmt.Errorf("contestant %s is in the program %s alone", name, program)
	}
	return nil, fmt.Errorf("unknown contestant %q: known are %s", name, strings.Join(Names(), ", "))
}

// CustomGuard is a contestant that admits by admit; a refusal is ErrRefused. close
// releases what it holds.
func CustomGuard(admit func(ctx context.Context, fn func(context.Context) error) error, limit func() int, close func()) *Guard {
	return &Guard{admit: admit, limit: limit, close: close}
}

// Do runs fn if and when the contestant admits it. A refusal by any contestant matches
// spillway.ErrRejected.
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

// Limit is the contestant's limit of concurrency, 0 if it does not report one.
func (g *Guard) Limit() int {
	if g.limit == nil {
		return 0
	}
	return g.limit()
}

// State is the state that the contestant reports; empty if none.
func (g *Guard) State() string {
	if g.state == nil {
		return ""
	}
	return g.state()
}

// Running counts the requests that were admitted and are not done.
func (g *Guard) Running() int { return int(g.running.Load()) }

// Waiting counts the requests that were neither admitted nor refused yet.
func (g *Guard) Waiting() int { return int(g.waiting.Load()) }

// ErrRefused is the refusal of a contestant without an error of its own.
var ErrRefused = &spillway.Rejection{Reason: spillway.QueueFull}

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
