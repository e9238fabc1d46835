package workerpool_test

import (
	"context"
	"errors"
	"fmt"

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
