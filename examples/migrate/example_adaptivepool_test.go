package migrate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/workerpool"
)

// The same growth rule by the fill of the queue, with the same numbers.
func Example_adaptivepool() {
	pool, err := workerpool.New(workerpool.Config{
		MinWorkers:   4,
		MaxWorkers:   32,
		QueueSize:    1000,
		GrowAt:       0.7,
		GrowCooldown: 5 * time.Second,
		IdleTimeout:  30 * time.Second,
		OnDone: func(r workerpool.Result) {
			if r.Err != nil {
				fmt.Println("failed:", r.Err)
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	err = pool.Submit(ctx, func(ctx context.Context) error { return send(ctx, "ann@example.org") })
	if err != nil {
		fmt.Println("refused:", err)
	}
	if err := pool.Drain(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: sent to ann@example.org
}
