package migrate_test

import (
	"context"
	"fmt"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/limiter/semaphore"
)

// Only the import line differs from the code for x/sync.
func Example_semaphoreByOneLine() {
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

// Eight at once. Without the law it finds out how many.
func Example_semaphore() {
	slots, err := limiter.New(limiter.Config{Law: limit.NewFixed(8)})
	if err != nil {
		fmt.Println(err)
		return
	}
	work := func(ctx context.Context) error {
		permit, err := slots.Acquire(ctx)
		if err != nil {
			return err
		}
		defer permit.Release()
		return query(ctx)
	}
	fmt.Println(work(context.Background()), slots.Stats().InFlight)
	// Output: <nil> 0
}
