package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/Jeffail/tunny"
	"github.com/alitto/pond/v2"
	gammazero "github.com/gammazero/workerpool"
	"github.com/panjf2000/ants/v2"
	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/lab/pools"
	"github.com/spillway-go/spillway/workerpool"
)

// job is one function in the forms that the contestants take, made beforehand
// so that no form costs an allocation per submission.
type job struct {
	plain    func()
	failable func() error
	ours     workerpool.Job
}

func newJob(work func()) *job {
	return &job{plain: work, failable: func() error { work(); return nil }, ours: func(context.Context) error { work(); return nil }}
}

// submitter is a contestant that takes jobs.
type submitter struct {
	submit  func(*job)      // waits for room
	try     func(*job) bool // does not; nil if it cannot refuse
	refused func() uint64   // by its own count; nil if it does not count
	close   func()          // waits until every job has ended
}

// newSubmitter starts a contestant with that many workers. A bounded queue gets
// buffer places. nonblocking is for contestants that need it as an option.
func newSubmitter(name string, workers, buffer int, nonblocking bool) (submitter, error) {
	switch name {
	case pools.Channel:
		jobs := make(chan func(), buffer)
		ended := start(workers, func() {
			for run := range jobs {
				run()
			}
		})
		return submitter{
			submit: func(j *job) { jobs <- j.plain },
			try: func(j *job) bool {
				select {
				case jobs <- j.plain:
					return true
				default:
					return false
				}
			},
			close: func() { close(jobs); ended() },
		}, nil
	case pools.Semaphore:
		ctx, slots := context.Background(), semaphore.NewWeighted(int64(workers))
		run := func(j *job) {
			defer slots.Release(1)
			j.plain()
		}
		return submitter{
			submit: func(j *job) { _ = slots.Acquire(ctx, 1); go run(j) },
			try: func(j *job) bool {
				ok := slots.TryAcquire(1)
				if ok {
					go run(j)
				}
				return ok
			},
			close: func() { _ = slots.Acquire(ctx, int64(workers)) },
		}, nil
	case pools.Errgroup:
		var group errgroup.Group
		group.SetLimit(workers)
		return submitter{
			submit: func(j *job) { group.Go(j.failable) },
			try:    func(j *job) bool { return group.TryGo(j.failable) },
			close:  func() { _ = group.Wait() },
		}, nil
	case pools.Ants:
		p, err := ants.NewPool(workers, ants.WithNonblocking(nonblocking), ants.WithExpiryDuration(pools.Idle))
		return submitter{
			submit: func(j *job) { _ = p.Submit(j.plain) },
			try:    func(j *job) bool { return p.Submit(j.plain) == nil },
			close:  p.Release,
		}, err
	case pools.Pond:
		p := pond.NewPool(workers, pond.WithQueueSize(buffer), pond.WithNonBlocking(nonblocking))
		return submitter{
			submit: func(j *job) { _ = p.Go(j.plain) },
			try:    func(j *job) bool { return p.Go(j.plain) == nil },
			close:  p.StopAndWait,
		}, nil
	case pools.Conc:
		p := pool.New().WithMaxGoroutines(workers)
		return submitter{submit: func(j *job) { p.Go(j.plain) }, close: p.Wait}, nil
	case pools.Gammazero:
		p := gammazero.New(workers)
		return submitter{submit: func(j *job) { p.Submit(j.plain) }, close: p.StopWait}, nil
	case pools.Spillway:
		p, err := workerpool.New(workerpool.Config{MaxWorkers: workers, QueueSize: buffer, IdleTimeout: pools.Idle})
		ctx := context.Background()
		return submitter{
			submit:  func(j *job) { _ = p.Submit(ctx, j.ours) },
			try:     func(j *job) bool { return p.TrySubmit(ctx, j.ours) == nil },
			refused: func() uint64 { return p.Stats().RejectedBy[spillway.ReasonQueueFull] },
			close:   func() { _ = p.Drain(ctx) },
		}, err
	}
	return submitter{}, fmt.Errorf("%s takes no jobs", name)
}

// start starts workers, for whose end the function it returns waits.
func start(workers int, work func()) (ended func()) {
	var all sync.WaitGroup
	for range workers {
		all.Go(work)
	}
	return all.Wait
}

// caller is a contestant that returns a job's result to its caller.
type caller struct {
	client func() func(int) int // a client calls the function it got, one call at a time
	close  func()
}

// newCaller starts a contestant with that many workers, which do work and answer with
// their argument plus one.
func newCaller(name string, workers, buffer int, work func()) (caller, error) {
	answer := func(x int) int { work(); return x + 1 }
	switch name {
	case pools.Channel: // each client owns its result channel and reuses it
		type request struct {
			x      int
			result chan int
		}
		requests := make(chan request, buffer)
		ended := start(workers, func() {
			for r := range requests {
				r.result <- answer(r.x)
			}
		})
		return caller{
			client: func() func(int) int {
				result := make(chan int, 1)
				return func(x int) int {
					requests <- request{x, result}
					return <-result
				}
			},
			close: func() { close(requests); ended() },
		}, nil
	case pools.Tunny:
		p := tunny.NewFunc(workers, func(payload any) any { return answer(payload.(int)) })
		return caller{client: func() func(int) int { return func(x int) int { return p.Process(x).(int) } }, close: p.Close}, nil
	case pools.Pond:
		p := pond.NewResultPool[int](workers, pond.WithQueueSize(buffer))
		return caller{
			client: func() func(int) int {
				x := 0
				fn := func() int { return answer(x) }
				return func(ask int) int {
					x = ask
					got, _ := p.Submit(fn).Wait()
					return got
				}
			},
			close: p.StopAndWait,
		}, nil
	case pools.Spillway:
		p, err := workerpool.New(workerpool.Config{MaxWorkers: workers, QueueSize: buffer})
		ctx := context.Background()
		return caller{
			client: func() func(int) int {
				x := 0
				fn := func(context.Context) (int, error) { return answer(x), nil }
				return func(ask int) int {
					x = ask
					got, _ := workerpool.Do(ctx, p, fn)
					return got
				}
			},
			close: func() { _ = p.Drain(ctx) },
		}, err
	}
	return caller{}, fmt.Errorf("%s returns no results", name)
}
