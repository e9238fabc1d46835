package limiter_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

func charge(context.Context) error { return nil }

// The usual way: Do releases the slot also after errors, panics and Goexit.
func ExampleLimiter_Do() {
	lim, err := limiter.New(limiter.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = lim.Do(context.Background(), charge)
	if rej, ok := errors.AsType[*spillway.Rejection](err); ok {
		fmt.Println("not now:", rej.Reason, "come back in", rej.RetryAfter)
	}
	fmt.Println(err, lim.Stats().Completed)
	// Output: <nil> 1
}

// A permit where the work does not fit into one function.
func ExampleLimiter_Acquire() {
	lim, _ := limiter.New(limiter.Config{Law: limit.NewFixed(1)})
	work := func(ctx context.Context) error {
		permit, err := lim.Acquire(ctx)
		if err != nil {
			return err // nothing was started, nothing to release
		}
		defer permit.Release() // also when the work panics
		err = charge(ctx)
		permit.Done(err) // finished: now it is a sample
		return err
	}
	fmt.Println(work(context.Background()))
	// Output: <nil>
}

// A full limiter refuses with a reason. Nothing was started.
func ExampleLimiter_TryAcquire() {
	lim, _ := limiter.New(limiter.Config{Law: limit.NewFixed(1)})
	first, _ := lim.TryAcquire(context.Background())
	_, err := lim.TryAcquire(context.Background())
	fmt.Println(errors.Is(err, spillway.ErrRejected), err)
	first.Done(nil)
	// Output: true spillway: rejected: queue_full
}

// One limiter for each route, dependency or tenant, and one place to see them.
func ExampleKeyed() {
	routes, _ := limiter.NewKeyed(limiter.KeyedConfig{})
	for _, route := range []string{"GET /patients", "POST /patients", "GET /patients"} {
		_ = routes.Do(context.Background(), route, charge)
	}
	for route, s := range routes.All() {
		fmt.Println(route, s.Completed)
	}
	// Output:
	// GET /patients 2
	// POST /patients 1
}

// A gauge measures a figure that latency does not show early enough, such as the wait
// for a connection of a pool. Memory comes with the package.
func ExampleGauge() {
	poolWait := func() float64 { return 0.250 } // seconds; from sql.DBStats, for example
	lim, _ := limiter.New(limiter.Config{
		Law:       limit.NewFixed(10),
		QueueSize: -1,
		Signals:   []limiter.Signal{limiter.Memory(0), limiter.Gauge("pool wait", poolWait, 0.1)},
	})
	_, _ = lim.Acquire(context.Background())
	_, err := lim.Acquire(context.Background())
	fmt.Println(err)
	// Output: spillway: rejected: signal (pool wait)
}

// Drain closes the intake, serves the callers that already wait, and ends with its context.
func ExampleLimiter_Drain() {
	lim, _ := limiter.New(limiter.Config{})
	_, _ = lim.Acquire(context.Background())                    // hangs for ever
	ctx, cancel := context.WithTimeout(context.Background(), 0) // in production: half a minute
	defer cancel()
	err := lim.Drain(ctx)
	if d, ok := errors.AsType[*spillway.DrainError](err); ok {
		fmt.Println("still running:", d.Running)
	}
	// Output: still running: 1
}
