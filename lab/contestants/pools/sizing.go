package main

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/spillway-go/spillway/lab/burn"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/pools"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"
	"github.com/spillway-go/spillway/workerpool"
)

// size returns a run for each phase.
func size(ctx context.Context, s pools.Sized) ([]results.Run, error) {
	cfg := workerpool.Config{}
	if s.Workers > 0 {
		cfg = workerpool.Config{MinWorkers: s.Workers, MaxWorkers: s.Workers}
	}
	p, err := workerpool.New(cfg)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	var out []results.Run
	for i, ph := range s.Phases {
		res, err := settleThenMeasure(ctx, s, target{p, ph, s.TurnsMS}, s.Seed+uint64(2*i))
		if err != nil {
			return nil, err
		}
		run, stats := experiment.FromLoad(res), p.Stats()
		run.Elapsed = s.Measure.Seconds() // jobs intended in this time, whenever they ended
		run.Series = nil
		run.Params = map[string]any{"gomaxprocs": runtime.GOMAXPROCS(0), "workers_then": stats.Workers, "queue": stats.QueueSize, "generator": res.Why}
		if s.Workers == 0 {
			run.Params["settle_seconds"] = s.Settle.Seconds()
		}
		out = append(out, run)
	}
	return out, ctx.Err()
}

// settleThenMeasure sends one continuous stream and returns the result of its second
// part.
func settleThenMeasure(ctx context.Context, s pools.Sized, t target, seed uint64) (*loadgen.Result, error) {
	stream := func(d time.Duration, seed uint64) (*loadgen.Result, error) {
		return loadgen.Run(ctx, loadgen.Config{Target: t, Timeout: s.Deadline, Open: loadgen.Poisson(t.PerSecond, d, seed)})
	}
	settled := make(chan error, 1)
	if s.Settle > 0 {
		go func() {
			_, err := stream(s.Settle, seed)
			settled <- err
		}()
		select {
		case <-time.After(s.Settle): // its last jobs end later
		case <-ctx.Done():
		}
	} else {
		settled <- nil
	}
	res, err := stream(s.Measure, seed+1)
	return res, errors.Join(err, <-settled)
}

// slice is how long a job computes before it checks its context and yields. The
// generator is in the same process: behind jobs that keep a processor for as long as
// the runtime allows it was late by half a second, which distorted all sizes.
const slice = 100 * time.Microsecond

// target submits jobs to a pool and waits for their end.
type target struct {
	pool *workerpool.Pool
	pools.Phase
	turnsMS int
}

func (t target) Do(ctx context.Context, _ uint64) loadgen.Outcome {
	ended := make(chan struct{})
	err := t.pool.TrySubmit(ctx, func(ctx context.Context) error {
		defer close(ended)
		for left := t.Compute; left > 0 && ctx.Err() == nil; left -= slice {
			burn.Turns(int(min(left, slice).Seconds() * 1000 * float64(t.turnsMS)))
			runtime.Gosched()
		}
		if t.Wait == 0 {
			return ctx.Err()
		}
		timer := time.NewTimer(t.Wait)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return loadgen.FromError(err)
	}
	select {
	case <-ended:
	case <-ctx.Done(): // may be before the job starts; then it never starts
	}
	return loadgen.FromError(ctx.Err())
}
