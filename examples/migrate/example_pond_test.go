package migrate_test

import (
	"context"
	"fmt"

	"github.com/spillway-go/spillway/workerpool"
)

// A result, a group, and panics as errors.
func Example_pond() {
	pool, err := workerpool.New(workerpool.Config{MaxWorkers: 10, OnPanic: workerpool.AsError})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()

	name, err := workerpool.Do(ctx, pool, func(ctx context.Context) (string, error) { return lookUp(ctx, 42) })
	fmt.Println(name, err)

	group := pool.Group(ctx) // the first error cancels the others; Collect lets all run
	for _, to := range []string{"ann", "bob"} {
		err := group.Submit(func(ctx context.Context) error { return send(ctx, to) })
		if err != nil {
			fmt.Println("refused:", err) // it is no part of the group
		}
	}
	fmt.Println(group.Wait(ctx))
	fmt.Println(pool.Drain(ctx))
	// Unordered output:
	// patient 42 <nil>
	// sent to ann
	// sent to bob
	// <nil>
	// <nil>
}
