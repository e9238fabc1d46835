package migrate_test

import (
	"context"
	"fmt"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

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
