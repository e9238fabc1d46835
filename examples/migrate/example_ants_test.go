package migrate_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/workerpool"
)

// A bounded pool without a queue, which refuses what no worker takes at once.
func Example_ants() {
	pool, err := workerpool.New(workerpool.Config{
		MaxWorkers: 20,
		QueueSize:  -1, // nothing waits
		OnDone: func(r workerpool.Result) {
			if r.Err != nil {
				fmt.Println("not sent:", r.Err) // a panic too, with its stack
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	err = pool.TrySubmit(ctx, func(ctx context.Context) error { return send(ctx, "ann@example.org") })
	if rej, ok := errors.AsType[*spillway.Rejection](err); ok {
		fmt.Println("later:", rej.Reason, rej.RetryAfter)
	}
	if err := pool.Drain(ctx); err != nil { // waits until ctx ends, and says what it left
		fmt.Println(err)
	}
	// Output: sent to ann@example.org
}
