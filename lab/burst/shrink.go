package burst

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/burst/specimen"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/workerpool"
)

// sooner is how many times as fast as published all times of a pool are that shrinks: the
// claim is about idle times, and the published one is half a minute.
const sooner = 100

// shrunk is the cell of what became of a pool's workers.
func shrunk(name string) ledger.Key {
	return ledger.Key{Setup: "a hundred times as fast", Load: "after the burst", Pattern: name}
}

// shrink lets a pool grow in a burst of jobs that only wait, and returns in percent of the
// minimum how many workers there were at most, at least after the burst, and three idle
// times after it.
func shrink(ctx context.Context, name string) (map[string]float64, error) {
	cfg := specimen.Published()
	cfg.Every, cfg.Cooldown, cfg.IdleTimeout = cfg.Every/sooner, cfg.Cooldown/sooner, cfg.IdleTimeout/sooner
	var submit func(task) bool
	var workers func() int
	burst, cancel := context.WithTimeout(ctx, publishedTime/sooner)
	defer cancel()
	if name == Published {
		pool := specimen.New(cfg)
		defer func() { _ = pool.Shutdown(ctx) }()
		submit, workers = func(t task) bool { return pool.Submit(burst, t) == nil }, pool.Workers
	} else {
		pool, err := workerpool.New(workerpool.Config{
			MinWorkers: cfg.MinWorkers, MaxWorkers: cfg.MaxWorkers, QueueSize: cfg.QueueSize,
			GrowAt: cfg.GrowAt, GrowCooldown: cfg.Cooldown, IdleTimeout: cfg.IdleTimeout,
		})
		if err != nil {
			return nil, err
		}
		defer pool.Close()
		submit = func(t task) bool { return pool.TrySubmit(context.Background(), t) == nil }
		workers = func() int { return pool.Stats().Workers }
	}
	var jobs sync.WaitGroup
	for burst.Err() == nil {
		jobs.Add(1)
		if !submit(func(context.Context) error { defer jobs.Done(); time.Sleep(PublishedWork.Wait); return nil }) {
			jobs.Done()
			time.Sleep(time.Millisecond)
		}
	}
	jobs.Wait()
	most := workers()
	least := most
	for ended := time.Now(); time.Since(ended) < 3*cfg.IdleTimeout && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		least = min(least, workers())
	}
	if most < 2*cfg.MinWorkers {
		return nil, fmt.Errorf("the pool did not grow: %d workers", most)
	}
	percent := func(n int) float64 { return 100 * float64(n) / float64(cfg.MinWorkers) }
	return map[string]float64{"most_percent": percent(most), "least_percent": percent(least), "left_percent": percent(workers())}, ctx.Err()
}
