package limiter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// Why is the limit four? Its operator said so.
func ExampleLimiter_SetBounds() {
	lim, _ := limiter.New(limiter.Config{})
	_ = lim.SetBounds(0, 4)
	s := lim.Stats()
	fmt.Println(s.Limit, s.State)
	for _, d := range s.Decisions {
		fmt.Println(d.From, "to", d.To, "because", d.Why)
	}
	// Output:
	// 4 upper bound: 4 instead of 32; the law: growing: at the start, until latency rises
	// 32 to 4 because upper bound
}

// Everything that was offered is accounted for.
func ExampleLimiter_Stats() {
	lim, _ := limiter.New(limiter.Config{Name: "patients", Law: limit.NewFixed(1), QueueSize: -1})
	running, _ := lim.Acquire(context.Background())
	_, _ = lim.Acquire(context.Background())
	s := lim.Stats()
	fmt.Println(s.Name, "offered", s.Offered, "admitted", s.Admitted, "in flight", s.InFlight, s.RejectedBy)
	running.Done(nil)
	// Output: patients offered 2 admitted 1 in flight 1 map[queue_full:1]
}

// A dry run admits all and counts what it would have refused.
func ExampleLimiter_SetMode() {
	lim, _ := limiter.New(limiter.Config{Law: limit.NewFixed(2), QueueSize: -1, Mode: limiter.DryRun})
	for range 3 {
		_, _ = lim.Acquire(context.Background()) // hang for ever
	}
	s := lim.Stats()
	fmt.Println("would be refused:", s.WouldReject, "refused:", s.Rejected)
	lim.SetMode(limiter.Enforce)
	_, err := lim.Acquire(context.Background())
	fmt.Println(err)
	// Output:
	// would be refused: 1 refused: 0
	// spillway: rejected: queue_full
}

// A report over a year takes as much of the database as four look-ups, and can wait.
func ExampleLimiter_AcquireWith() {
	lim, _ := limiter.New(limiter.Config{Law: limit.NewFixed(5), QueueSize: -1})
	report, _ := lim.AcquireWith(context.Background(), limiter.Request{Cost: 4, Priority: spillway.Low})
	fmt.Println("in use:", lim.Stats().InFlight)
	_, err := lim.AcquireWith(context.Background(), limiter.Request{Cost: 4, Priority: spillway.Low})
	fmt.Println(err)
	report.Done(nil)
	// Output:
	// in use: 4
	// spillway: rejected: queue_full
}

// Each refusal as it is made, for a log or a counter.
func ExampleObserver() {
	lim, _ := limiter.New(limiter.Config{Law: limit.NewFixed(1), QueueSize: -1, Observer: &limiter.Observer{
		Rejected: func(p spillway.Priority, r *spillway.Rejection) { fmt.Println("refused:", p, r.Reason) },
		LimitChanged: func(d limit.Decision) {
			fmt.Println("limit:", d.From, "to", d.To, "because", d.Why)
		},
	}})
	running, _ := lim.Acquire(context.Background())
	_, _ = lim.Acquire(spillway.WithPriority(context.Background(), spillway.High))
	_ = lim.SetBounds(2, 0)
	running.Done(nil)
	// Output:
	// refused: high queue_full
	// limit: 1 to 2 because lower bound
}

// Where is the permit that is never ended?
func ExampleConfig_leakAfter() {
	lim, _ := limiter.New(limiter.Config{LeakAfter: time.Nanosecond}) // in production: a minute
	_, _ = lim.Acquire(context.Background())
	for lim.Stats().OldestInFlight == 0 { // a clock may stand still for a moment
	}
	for _, leak := range lim.Stats().Leaks {
		fmt.Println(leak.Priority, leak.Site != "")
	}
	// Output: normal true
}
