package shedlog_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/shedlog"
)

func Example() {
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	shed := shedlog.New(shedlog.Config{Logger: logger})
	defer shed.Close() // once the service has drained
	lim, err := limiter.New(limiter.Config{Name: "database", Law: limit.NewFixed(1), QueueSize: -1, Observer: &limiter.Observer{Rejected: shed.Rejected}})
	if err != nil {
		panic(err)
	}
	shed.Watch(lim)

	_ = lim.Do(context.Background(), func(ctx context.Context) error {
		for range 1000 { // the only slot is taken: a thousand refusals, and two lines
			_ = lim.Do(ctx, func(context.Context) error { return nil })
		}
		return nil
	})
	fmt.Println("refused:", lim.Stats().Rejected)
	// Output: refused: 1000
}

// In a dry run nothing is refused. What would have been refused is logged by a Log of its own.
func ExampleLog_Rejected() {
	dry := shedlog.New(shedlog.Config{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)).With("dry_run", true)})
	defer dry.Close()
	lim, err := limiter.New(limiter.Config{
		Mode: limiter.DryRun, Law: limit.NewFixed(1), QueueSize: -1,
		Observer: &limiter.Observer{WouldReject: dry.Rejected},
	})
	if err != nil {
		panic(err)
	}
	dry.Watch(lim)

	_ = lim.Do(context.Background(), func(ctx context.Context) error { // the only slot is taken
		return lim.Do(ctx, func(context.Context) error { return nil })
	})
	fmt.Println("would have been refused:", lim.Stats().WouldReject)
	// Output: would have been refused: 1
}
