package main

import (
	"context"
	"runtime/debug"

	"github.com/spillway-go/spillway/lab/routes"
)

// collect counts what the collector does in the requests of a contestant. Nothing forces a
// collection.
func collect(_ context.Context, j routes.Player) (map[string]float64, error) {
	p, err := player(j)
	if err != nil {
		return nil, err
	}
	p.Block(warm)
	var before, after debug.GCStats
	debug.ReadGCStats(&before)
	p.Block(routes.CollectedRequests)
	debug.ReadGCStats(&after)
	return map[string]float64{
		"collections": float64(after.NumGC - before.NumGC), "pause_us": float64((after.PauseTotal - before.PauseTotal).Microseconds()),
	}, p.Done()
}
