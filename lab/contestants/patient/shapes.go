package main

import (
	"context"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	pattern "github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	plan "github.com/spillway-go/spillway/lab/shapes"
	"github.com/spillway-go/spillway/lab/turns"
	"github.com/spillway-go/spillway/loadgen"
)

// reuseH answers requests by the patterns of experiment H, over its simulated store at
// a hundredth of its latency: the question is the processor time of a request, and waiting
// uses none.
func reuseH(ctx context.Context, j plan.Job) ([][]turns.Reading, error) {
	people, err := simulated.New(j.Patients, 1)
	if err != nil {
		return nil, err
	}
	store, err := simulated.Inject(people, simulated.Config{
		MinLatency: 500 * time.Microsecond, MaxLatency: time.Millisecond, ErrorRate: 0.05, Seed: j.Seed,
	})
	if err != nil {
		return nil, err
	}
	players := make([]turns.Player, len(j.Patterns))
	for i, reused := range j.Patterns {
		name := map[string]string{plan.Spawn: pattern.Naive, plan.Pool: pattern.WorkerPool, plan.PoolReuse: pattern.Optimized}[reused]
		runner, err := pattern.New(name, pattern.Config{Workers: j.Bound, QueueSize: j.Bound})
		if err != nil {
			return nil, err
		}
		defer func() { _ = runner.Drain(ctx) }() // it is idle
		target := loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome {
			id := patientapi.FormatID(1 + int(n*7919%uint64(j.Patients)))
			found, err := pattern.Run(ctx, runner, func(ctx context.Context, p *patientapi.Patient) error { return store.Patient(ctx, id, p) })
			if err == nil {
				found.Release()
			}
			return loadgen.FromError(err)
		})
		var failed error
		players[i] = turns.Player{
			Name: reused,
			Block: func(n int) {
				_, failed = loadgen.Run(ctx, loadgen.Config{Closed: &loadgen.Closed{Clients: j.Bound, Requests: uint64(n)}, Target: target})
			},
			Done: func() error { return failed },
		}
	}
	return j.Play(ctx, players)
}
