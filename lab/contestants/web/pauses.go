package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/spillway-go/spillway/lab/routes"
)

// requestsBefore is how many requests come before a collection.
const requestsBefore = 4

// pauses are the collector's longest of every block, in microseconds, by player. The
// players take turns of a block, in a new order every round; heap and roots are the same
// for all.
func pauses(ctx context.Context, j routes.Job) ([][]float64, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	rng := rand.New(rand.NewPCG(j.Seed, 12))
	out := make([][]float64, len(j.Players))
	var all []func() error
	for i, name := range j.Players {
		h, err := starts[name]()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		p := player(name, h, j, 1)
		all = append(all, func() error {
			for range routes.PauseBlock {
				p.Block(requestsBefore)
				runtime.GC()
			}
			var stats debug.GCStats
			debug.ReadGCStats(&stats) // the last 256
			out[i] = append(out[i], float64(slices.Max(stats.Pause[:routes.PauseBlock]))/1e3)
			return p.Done()
		})
	}
	for range j.Rounds {
		for _, i := range rng.Perm(len(all)) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err := all[i](); err != nil {
				return nil, fmt.Errorf("%s: %w", j.Players[i], err)
			}
		}
	}
	return out, nil
}
