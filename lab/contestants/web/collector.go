package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"

	"github.com/spillway-go/spillway/lab/routes"
	"github.com/spillway-go/spillway/lab/turns"
)

// collect counts what the collector does in the requests of each player, one player after
// the other. Nothing forces a collection; heap and roots are the same for all.
func collect(ctx context.Context, j routes.Job) ([]routes.Collected, error) {
	players := make([]turns.Player, len(j.Players))
	for i, name := range j.Players {
		var err error
		if players[i], err = player(name, j, 1); err != nil {
			return nil, err
		}
		players[i].Block(warm)
	}
	out := make([]routes.Collected, len(players))
	for _, i := range rand.New(rand.NewPCG(j.Seed, 12)).Perm(len(players)) {
		var before, after debug.GCStats
		debug.ReadGCStats(&before)
		players[i].Block(routes.CollectedRequests)
		debug.ReadGCStats(&after)
		out[i] = routes.Collected{Collections: int(after.NumGC - before.NumGC), Pause: after.PauseTotal - before.PauseTotal}
		if err := cmp.Or(players[i].Done(), ctx.Err()); err != nil {
			return nil, fmt.Errorf("%s: %w", j.Players[i], err)
		}
	}
	return out, nil
}
