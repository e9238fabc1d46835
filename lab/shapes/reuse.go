package shapes

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/burst"
	jobs "github.com/spillway-go/spillway/lab/burst/specimen"
	patients "github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/turns"
)

// What is reused, in the set-ups of G9.
const (
	Spawn     = "spawn"                    // nothing: a goroutine and an object for each request
	Pool      = "pool"                     // goroutines
	PoolReuse = "pool-reuse"               // goroutines and objects
	AsPrinted = "pool-reuse, as published" // goroutines, and the objects of requests that fail
)

// Served are requests as experiment H was published, a hundred at a time, over its store, which does
// not wait. Clients of a closed loop ask for patients; they cost the same with all patterns.
func Served(pattern string) (turns.Player, error) {
	name, known := map[string]string{Spawn: patients.Naive, Pool: patients.WorkerPool, PoolReuse: patients.Warm, AsPrinted: patients.Optimized}[pattern]
	if !known {
		return turns.Player{}, fmt.Errorf("no pattern %q", pattern)
	}
	s, err := patients.New(name, &patients.Simulated{ErrorRate: .05}, patients.Config{Workers: atOnce, Queue: atOnce, Wait: time.Minute})
	return turns.Player{Name: pattern, Block: func(n int) {
		var clients sync.WaitGroup
		var left atomic.Int64
		left.Store(int64(n))
		for range atOnce {
			clients.Go(func() {
				for left.Add(-1) >= 0 {
					if reply, err := s.Look(context.Background(), "P000042"); err == nil {
						s.Release(reply)
					}
				}
			})
		}
		clients.Wait()
	}}, err
}

// burstJobs are the jobs of experiment B at a hundredth of the published time, as waiting uses no
// processor time, in its published pool where goroutines are reused.
func burstJobs(pattern string) (turns.Player, error) {
	memory := burst.NewMemory(burst.PublishedWork.Bytes, pattern == PoolReuse)
	one := func(i int64) int64 {
		b := memory.Take()
		time.Sleep(burst.PublishedWork.Wait / 100)
		memory.Give(b)
		return i + 1
	}
	prepare := inPublishedPool
	if pattern == Spawn {
		prepare = spawned
	}
	var run Batch
	return turns.Player{
		Name:  pattern,
		Ready: func(int) error { run = prepare(atOnce, one); return nil },
		Block: func(n int) { run(n) },
	}, nil
}

// inPublishedPool bounds tasks by a number of workers of the pool of experiment B, which
// has room for as many more.
func inPublishedPool(bound int, do work) Batch {
	t, ctx := new(tally), context.Background()
	cfg := jobs.Published()
	cfg.MinWorkers, cfg.MaxWorkers, cfg.QueueSize = bound, bound, bound
	pool := jobs.New(cfg)
	return t.batch(func(i int64) {
		t.all.Add(1)
		_ = pool.Submit(ctx, func(context.Context) error { // it waits for room
			defer t.all.Done()
			t.sum.Add(do(i))
			return nil
		})
	}, func() { _ = pool.Shutdown(ctx) })
}
