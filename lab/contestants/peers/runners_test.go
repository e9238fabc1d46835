package peers

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/alitto/pond/v2"
	"github.com/panjf2000/ants/v2"
	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/errgroup"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/workerpool"
)

type job = func(context.Context) error

// runner is a library that runs jobs, with one worker. What it cannot do is nil.
type runner struct {
	submit func(ctx context.Context, j job) error // waits for room
	try    func(j job) error                      // does not
	add    func(j job) error                      // submits what wait waits for, with the runner's context
	wait   func() error                           // for the end of what was added, and says how it was
	urgent func(j job) error                      // is submit for a job that comes before others
	call   func(fn func() (int, error)) (int, error)
	stop   func(ctx context.Context) error // ends with ctx
	clean  func()                          // for when all jobs have ended
	closed func() bool                     // whether a stop whose deadline has passed has begun; nil: it has

	queue    int  // jobs that may wait
	contexts bool // whether submit heeds its context; otherwise only the job gets it
}

// library makes runners, each with the context of all that is added.
type library struct {
	name   string
	open   func(ctx context.Context) runner
	shares bool // goroutines that all pools share, and which outlive them: its time is never virtual
}

const queue = 2

var (
	none    = context.Background()
	errFull = errors.New("full") // for libraries that answer with a bool
)

var libraries = []library{
	{"workerpool", func(ctx context.Context) runner {
		p := must(workerpool.New(workerpool.Config{MaxWorkers: 1, QueueSize: queue}))
		var err error // of the job that was added
		return runner{
			submit: func(ctx context.Context, j job) error { return p.Submit(ctx, j) },
			try:    func(j job) error { return p.TrySubmit(none, j) },
			add: func(j job) error { // Do waits at once
				_, err = workerpool.Do(ctx, p, func(ctx context.Context) (struct{}, error) { return struct{}{}, j(ctx) })
				return err
			},
			wait:   func() error { return err },
			urgent: func(j job) error { return p.Submit(spillway.WithPriority(none, spillway.High), j) },
			call: func(fn func() (int, error)) (int, error) {
				return workerpool.Do(none, p, func(context.Context) (int, error) { return fn() })
			},
			stop:     p.Drain,
			clean:    p.Close,
			queue:    queue,
			contexts: true,
		}
	}, false},
	{"ants", func(ctx context.Context) runner {
		p := must(ants.NewPool(1))
		run := func(ctx context.Context, j job) error { return p.Submit(func() { _ = j(ctx) }) }
		return runner{
			submit: run,
			try: func(j job) error { // a pool that refuses is made so
				q := must(ants.NewPool(1, ants.WithNonblocking(true)))
				hold := make(chan struct{})
				defer q.Release()
				defer close(hold)
				must(0, q.Submit(func() { <-hold }))
				return q.Submit(func() { _ = j(none) })
			},
			add: func(j job) error { return run(ctx, j) },
			stop: func(ctx context.Context) error {
				end, _ := ctx.Deadline()
				return p.ReleaseTimeout(time.Until(end))
			},
			clean: p.Release,
		}
	}, false},
	{"pond", func(ctx context.Context) runner {
		p := pond.NewPool(1, pond.WithQueueSize(queue))
		group := p.NewGroupContext(ctx)
		return runner{
			submit: func(ctx context.Context, j job) error { return p.Go(func() { _ = j(ctx) }) },
			try: func(j job) error {
				if _, ok := p.TrySubmit(func() { _ = j(none) }); !ok {
					return errFull
				}
				return nil
			},
			add:  func(j job) error { group.SubmitErr(func() error { return j(ctx) }); return nil },
			wait: func() error { return group.Wait() },
			call: func(fn func() (int, error)) (int, error) {
				q := pond.NewResultPool[int](1)
				defer q.StopAndWait()
				return q.SubmitErr(fn).Wait()
			},
			stop: func(ctx context.Context) error {
				select {
				case <-p.Stop().Done():
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			},
			clean:  p.StopAndWait,
			closed: p.Stopped,
			queue:  queue,
		}
	}, true},
	{"conc", func(ctx context.Context) runner {
		p := pool.New().WithMaxGoroutines(1).WithContext(ctx)
		add := func(j job) error { p.Go(j); return nil }
		wait := sync.OnceValue(p.Wait)
		return runner{
			submit: func(_ context.Context, j job) error { return add(j) },
			add:    add,
			wait:   wait,
			call: func(fn func() (int, error)) (int, error) {
				q := pool.NewWithResults[int]().WithErrors()
				q.Go(fn)
				got, err := q.Wait()
				if err != nil {
					return 0, err
				}
				return got[0], nil
			},
			clean: func() { _ = wait() },
		}
	}, false},
	{"errgroup", func(ctx context.Context) runner {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(1)
		add := func(j job) error { group.Go(func() error { return j(ctx) }); return nil }
		return runner{
			submit: func(_ context.Context, j job) error { return add(j) },
			try: func(j job) error {
				if !group.TryGo(func() error { return j(ctx) }) {
					return errFull
				}
				return nil
			},
			add:   add,
			wait:  group.Wait,
			clean: func() { _ = group.Wait() },
		}
	}, false},
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
