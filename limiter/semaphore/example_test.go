package semaphore_test

import (
	"context"
	"fmt"

	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/limiter/semaphore"
)

func query(context.Context) error { return nil }

// The code is as for golang.org/x/sync/semaphore. The limiter behind the semaphore has counted.
func Example() {
	slots := semaphore.NewWeighted(8)
	work := func(ctx context.Context) error {
		if err := slots.Acquire(ctx, 1); err != nil {
			return err
		}
		defer slots.Release(1)
		return query(ctx)
	}
	fmt.Println(work(context.Background()), slots.Limiter().Stats().Completed)
	// Output: <nil> 1
}

// The limit is learned, the semaphore has a name in metrics, and callers wait as long as their
// contexts allow.
func ExampleNew() {
	lim, err := limiter.New(limiter.Config{Name: "reports", MaxWait: limiter.NoMaxWait})
	if err != nil {
		fmt.Println(err)
		return
	}
	slots := semaphore.New(lim)
	if err := slots.Acquire(context.Background(), 3); err != nil {
		fmt.Println(err)
		return
	}
	slots.Release(2)
	fmt.Println(lim.Stats().InFlight)
	slots.Release(1)
	// Output: 1
}

// A size is tried before it counts: in a dry run all work runs, and the statistics say how much
// would have been refused.
func ExampleWeighted_Limiter() {
	slots := semaphore.NewWeighted(1)
	slots.Limiter().SetMode(limiter.DryRun)
	fmt.Println(slots.TryAcquire(1), slots.TryAcquire(1))
	fmt.Println(slots.Limiter().Stats().WouldReject)
	slots.Release(2)
	// Output:
	// true true
	// 1
}
