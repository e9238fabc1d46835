package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/workerpool"
)

// Hand jobs over, then let the pool finish them.
func ExamplePool_Submit() {
	pool, err := workerpool.New(workerpool.Config{
		MaxWorkers: 4,
		OnDone: func(r workerpool.Result) {
			if r.Err != nil {
				fmt.Println("job:", r.Err)
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = pool.Submit(context.Background(), func(context.Context) error { return errors.New("mail server is down") })
	fmt.Println("submit:", err)
	_ = pool.Drain(context.Background())
	// Unordered output:
	// submit: <nil>
	// job: mail server is down
}

// Wait for a typed result.
func ExampleDo() {
	pool, _ := workerpool.New(workerpool.Config{})
	n, err := workerpool.Do(context.Background(), pool, func(context.Context) (int, error) { return 6 * 7, nil })
	fmt.Println(n, err)
	pool.Close()
	// Output: 42 <nil>
}

// Refuse instead of waiting, and tell the caller when to come back.
func ExamplePool_TrySubmit() {
	pool, _ := workerpool.New(workerpool.Config{MaxWorkers: 1, QueueSize: -1})
	busy := make(chan struct{})
	_ = pool.Submit(context.Background(), func(context.Context) error { <-busy; return nil })
	err := pool.TrySubmit(context.Background(), func(context.Context) error { return nil })
	if rej, ok := errors.AsType[*spillway.Rejection](err); ok {
		fmt.Println(rej.Reason)
	}
	close(busy)
	pool.Close()
	// Output: queue_full
}

// Run jobs that belong together, and stop at the first error.
func ExamplePool_Group() {
	pool, _ := workerpool.New(workerpool.Config{MaxWorkers: 2})
	defer pool.Close()
	group := pool.Group(context.Background())
	for _, name := range []string{"a", "b"} {
		err := group.Submit(func(context.Context) error {
			if name == "b" {
				return errors.New("no such patient: " + name)
			}
			return nil
		})
		if err != nil {
			fmt.Println("refused:", err)
		}
	}
	fmt.Println(group.Wait(context.Background()))
	// Output: no such patient: b
}

// Jobs find more work, and submit it to their own pool. A job does refused work itself: if jobs
// waited for room, all workers might wait.
func ExampleGroup_TrySubmit() {
	pool, _ := workerpool.New(workerpool.Config{MaxWorkers: 2, QueueSize: 1})
	defer pool.Close()
	folders := map[string][]string{"/": {"/a", "/b", "/c"}, "/a": {"/a/x", "/a/y"}}
	var seen atomic.Int64
	group := pool.Group(context.Background())
	var visit func(folder string) workerpool.Job
	visit = func(folder string) workerpool.Job {
		return func(ctx context.Context) error {
			seen.Add(1)
			for _, inner := range folders[folder] {
				err := group.TrySubmit(visit(inner))
				if errors.Is(err, spillway.ErrRejected) {
					err = visit(inner)(ctx)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	if err := group.Submit(visit("/")); err != nil {
		fmt.Println("refused:", err)
	}
	fmt.Println(group.Wait(context.Background()), seen.Load())
	// Output: <nil> 6
}

// Change the number of workers while the pool runs.
func ExamplePool_Resize() {
	pool, _ := workerpool.New(workerpool.Config{MaxWorkers: 2})
	defer pool.Close()
	fmt.Println(pool.Limit())
	if err := pool.Resize(1, 8); err != nil {
		fmt.Println(err)
	}
	fmt.Println(pool.Limit())
	// Output:
	// 2
	// 8
}
