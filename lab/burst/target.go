package burst

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/burst/specimen"
	"github.com/spillway-go/spillway/workerpool"
)

// Contestants. All but naive bound what they run at once.
const (
	Naive     = "naive"           // a goroutine for each job
	Published = "published-shape" // the published pool's
	Channel   = "channel"         // as many workers and queue places, refusing at once
	Spillway  = "spillway"        // workerpool.New(workerpool.Config{}) and TrySubmit
	Reused    = "spillway-reused" // the same with buffers from objectpool
	Sized     = "spillway-sized"  // the same with a set number of workers and queue places
)

// Names lists the contestants in the order of the report.
func Names() []string { return []string{Naive, Published, Channel, Spillway, Reused, Sized} }

// sized is 230,000 jobs of 20 ms a second, 2.3 GB of buffers, and a queue of a few
// milliseconds. Only a number bounds the memory of jobs that hold it while they wait:
// more jobs at once do more, up to the capacity of the processors.
var sized = workerpool.Config{MaxWorkers: 4_600, QueueSize: 1_000}

// reuses reports whether a contestant's jobs reuse their buffers.
func reuses(name string) bool { return name == Reused || name == Sized }

// task is the job submitted to a contestant: the same for all submissions of one
// batch, so that the generator allocates little.
type task = func(context.Context) error

// target is a contestant under load.
type target struct {
	submit func(task) bool                     // false: refused
	parks  bool                                // a submission may park its goroutine
	drain  func()                              // waits for what was accepted
	state  func() (running, queued, bound int) // what it reports about itself; nil: nothing
}

func newTarget(name string) (*target, error) {
	ctx, shape := context.Background(), specimen.Published()
	var all sync.WaitGroup
	switch name {
	case Naive:
		return &target{
			submit: func(t task) bool { all.Go(func() { _ = t(ctx) }); return true },
			drain:  all.Wait,
		}, nil
	case Published:
		pool := specimen.New(shape)
		submit := func(t task) bool {
			ctx, cancel := context.WithTimeout(ctx, time.Microsecond) // as published
			defer cancel()
			return pool.Submit(ctx, t) == nil
		}
		return &target{
			submit: submit, parks: true,
			drain: func() { _ = pool.Shutdown(ctx) },
			state: func() (int, int, int) { return pool.Workers(), pool.Queued(), shape.MaxWorkers },
		}, nil
	case Channel:
		queue := make(chan task, shape.QueueSize)
		for range shape.MaxWorkers {
			all.Go(func() {
				for t := range queue {
					_ = t(ctx)
				}
			})
		}
		submit := func(t task) bool {
			select {
			case queue <- t:
				return true
			default:
				return false
			}
		}
		return &target{
			submit: submit,
			drain:  func() { close(queue); all.Wait() }, // all generators have ended
			state:  func() (int, int, int) { return shape.MaxWorkers, len(queue), shape.MaxWorkers },
		}, nil
	}
	var cfg workerpool.Config
	if name == Sized {
		cfg = sized
	}
	pool, err := workerpool.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("contestant %q: %w", name, err)
	}
	return &target{
		submit: func(t task) bool { return pool.TrySubmit(ctx, t) == nil },
		drain:  func() { _ = pool.Drain(ctx) },
		state:  func() (int, int, int) { s := pool.Stats(); return s.InFlight, s.Queued, s.MaxWorkers },
	}, nil
}
