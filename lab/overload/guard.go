package overload

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
	WorkerPool   = "workerpool"    // ours: as many workers as the database has slots, the default queue, refused when that is full
	Failsafe     = "failsafe"      // the best published adaptive limiter
	Spillway     = "spillway"      // ours: limiter.Config{}, no configuration
)

// Names lists the contestants. Those before Failsafe and after None are configured
// with the size of the database, which an operator has to guess.
func Names() []string {
	return []string{None, Semaphore, SemaphoreTry, SemaphoreBig, WorkerPool, Failsafe, Spillway}
}

// Guard is in front of a database and decides which requests it gets.
type Guard struct {
	Admit func(ctx context.Context, fn func(context.Context) error) error // a refusal is ErrRefused, or another rejection
	Limit func() int                                                      // of concurrency, 0: none is known
	Close func()                                                          // releases what it holds

	waiting, running atomic.Int64
}

// ErrRefused is the refusal of a contestant without an error of its own.
var ErrRefused = &spillway.Rejection{Reason: spillway.ReasonQueueFull}

// NewGuard returns the contestant of that name in front of a database with that many
// slots. Close it. Only the program has Failsafe.
func NewGuard(name string, slots int) (*Guard, error) { return newGuard(name, slots, false) }

// newGuard is NewGuard, of which Spillway may stand at the front of its process.
func newGuard(name string, slots int, front bool) (*Guard, error) {
	g := &Guard{Limit: func() int { return slots }, Close: func() {}}
	switch name {
	case None:
		slots = 0 // none is known
		g.Admit = func(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }
	case Semaphore:
		return SemaphoreFor(slots, 0), nil
	case SemaphoreBig:
		return SemaphoreFor(4*slots, 0), nil
	case SemaphoreTry:
		s := semaphore.NewWeighted(int64(slots))
		g.Admit = func(ctx context.Context, fn func(context.Context) error) error {
			if !s.TryAcquire(1) {
				return ErrRefused
			}
			defer s.Release(1)
			return fn(ctx)
		}
	case WorkerPool:
		pool, err := workerpool.New(workerpool.Config{MaxWorkers: slots, MaxWait: -1})
		if err != nil {
			return nil, err
		}
		g.Close = pool.Close
		g.Admit = func(ctx context.Context, fn func(context.Context) error) error {
			_, err := workerpool.Do(ctx, pool, func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) })
			return err
		}
	case Spillway:
		lim, err := limiter.New(limiter.Config{})
		if err != nil {
			return nil, err
		}
		if front {
			lim.Front()
		}
		g.Admit, g.Limit, g.Close = lim.Do, lim.Limit, lim.Close
	default:
		return nil, fmt.Errorf("no contestant %q here: there are %s, and %s is in the program %s alone", name, strings.Join(Names(), ", "), Failsafe, program)
	}
	return g, nil
}

// SemaphoreFor returns an x/sync/semaphore with that many slots. It refuses what has waited for a slot
// for the given time; 0: nothing.
func SemaphoreFor(slots int, wait time.Duration) *Guard {
	s := semaphore.NewWeighted(int64(slots))
	return &Guard{
		Limit: func() int { return slots }, Close: func() {},
		Admit: func(ctx context.Context, fn func(context.Context) error) error {
			waiting, cancel := ctx, context.CancelFunc(func() {})
			if wait > 0 {
				waiting, cancel = context.WithTimeout(ctx, wait)
			}
			err := s.Acquire(waiting, 1)
			cancel()
			switch {
			case ctx.Err() != nil && err != nil:
				return ctx.Err()
			case err != nil:
				return ErrRefused
			}
			defer s.Release(1)
			return fn(ctx)
		},
	}
}

// Do runs fn if and when the contestant admits it.
func (g *Guard) Do(ctx context.Context, fn func(context.Context) error) error {
	g.waiting.Add(1)
	decide := sync.OnceFunc(func() { g.waiting.Add(-1) })
	defer decide()
	return g.Admit(ctx, func(ctx context.Context) error {
		decide()
		g.running.Add(1)
		defer g.running.Add(-1)
		return fn(ctx)
	})
}

// Running counts the requests that were admitted and are not done.
func (g *Guard) Running() int { return int(g.running.Load()) }

// Waiting counts the requests that were neither admitted nor refused yet.
func (g *Guard) Waiting() int { return int(g.waiting.Load()) }
