package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"

	"github.com/spillway-go/spillway/lab/routes"
)

// collect counts what the collector does in the players' requests. It runs when it likes:
// nothing forces a collection. The players send theirs in blocks, in a new order every
// round; heap and roots are the same for all, and a collection that one block has begun
// is as likely to end in any other.
func collect(ctx context.Context, j routes.Job) ([]routes.Collected, error) {
	rng := rand.New(rand.NewPCG(j.Seed, 12))
	out := make([]routes.Collected, len(j.Players))
	var all []func() error
	for i, name := range j.Players {
		h, err := starts[name]()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		p := player(name, h, j, 1)
		all = append(all, func() error {
			var before, after debug.GCStats
			debug.ReadGCStats(&before)
			p.Block(routes.CollectBlock)
			debug.ReadGCStats(&after)
			out[i].Collections += int(after.NumGC - before.NumGC)
			out[i].Pause += after.PauseTotal - before.PauseTotal
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
