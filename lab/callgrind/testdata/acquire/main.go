// Command acquire takes and returns slots of a limiter, in blocks of so many.
package main

import (
	"context"

	"github.com/spillway-go/spillway/lab/callgrind"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// Input says what is counted.
type input struct {
	Calls, Rounds int
	Seed          uint64
}

func main() {
	contestant.Program(map[string]contestant.Role{"acquire": contestant.Func(func(ctx context.Context, in input) (any, error) {
		fixed, err := limiter.New(limiter.Config{Law: limit.NewFixed(8)})
		if err != nil {
			return nil, err
		}
		adaptive, err := limiter.New(limiter.Config{})
		if err != nil {
			return nil, err
		}
		full, err := limiter.New(limiter.Config{Law: limit.NewFixed(1), QueueSize: -1})
		if err != nil {
			return nil, err
		}
		if _, err := full.Acquire(ctx); err != nil {
			return nil, err
		}
		served := func(l *limiter.Limiter) func() {
			return func() {
				for range in.Calls {
					p, err := l.Acquire(ctx)
					if err == nil {
						p.Done(nil)
					}
				}
			}
		}
		callgrind.Play(in.Rounds, in.Seed, []func(){served(fixed), served(adaptive), func() {
			for range in.Calls {
				_, _ = full.TryAcquire(ctx) // is refused
			}
		}})
		return nil, nil
	})})
}
