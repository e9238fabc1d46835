package migrate_test

import (
	"context"
	"fmt"

	"github.com/spillway-go/spillway/fanout"
	"github.com/spillway-go/spillway/workerpool"
)

// A result, a group, and panics as errors.
func Example_pond() {
	pool, err := workerpool.New(workerpool.Config{MaxWorkers: 10, PanicsAsErrors: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()

	name, err := workerpool.Do(ctx, pool, func(ctx context.Context) (string, error) { return lookUp(ctx, 42) })
	fmt.Println(name, err)

	mail := func(ctx context.Context, to string) (struct{}, error) {
		return workerpool.Do(ctx, pool, func(ctx context.Context) (struct{}, error) { return struct{}{}, send(ctx, to) })
	}
	_, err = fanout.Map(ctx, fanout.MapConfig{}, []string{"ann", "bob"}, mail) // the first error cancels the others
	fmt.Println(err)
	fmt.Println(pool.Drain(ctx))
	// Unordered output:
	// patient 42 <nil>
	// sent to ann
	// sent to bob
	// <nil>
	// <nil>
}
