package limiter_test

import (
	"context"
	"fmt"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// A limiter in place of a weighted semaphore of golang.org/x/sync: only the constructor and
// the line that acquires differ. With package
// limiter/semaphore only the import differs. Release alone is enough for a fixed limit. A weight is
// Request.Cost or spillway.WithCost.
//
//	slots := semaphore.NewWeighted(8)
//	...
//	if err := slots.Acquire(ctx, 1); err != nil {
//		return err
//	}
//	defer slots.Release(1)
func ExamplePermit_Release() {
	slots, _ := limiter.New(limiter.Config{Law: limit.NewFixed(8)})
	query := func(ctx context.Context) error {
		permit, err := slots.Acquire(ctx)
		if err != nil {
			return err
		}
		defer permit.Release()
		return charge(ctx)
	}
	fmt.Println(query(context.Background()), slots.Stats().InFlight)
	// Output: <nil> 0
}

// A request turns out to be a stream: it gives its slot back and runs on.
func ExamplePermit_Long() {
	lim, _ := limiter.New(limiter.Config{Law: limit.NewFixed(1)})
	permit, _ := lim.Acquire(context.Background())
	defer permit.Release()
	permit.Long()
	s := lim.Stats()
	fmt.Println("slots:", s.InFlight, "streams:", s.LongInFlight)
	// Output: slots: 0 streams: 1
}

// Metrics and a log observe the same limiter.
func ExampleObservers() {
	metrics := &limiter.Observer{Ended: func(limiter.End) { fmt.Println("counted") }}
	log := &limiter.Observer{Ended: func(e limiter.End) { fmt.Println("logged:", e.Outcome) }}
	lim, _ := limiter.New(limiter.Config{Observer: limiter.Observers(metrics, log)})
	_ = lim.Do(context.Background(), charge)
	// Output:
	// counted
	// logged: success
}
