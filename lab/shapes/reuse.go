package shapes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/burst"
	jobs "github.com/spillway-go/spillway/lab/burst/specimen"
	"github.com/spillway-go/spillway/lab/callgrind"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	patients "github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
	"github.com/spillway-go/spillway/load/usage"
)

// What is reused, in the set-ups of G9.
const (
	Spawn     = "spawn"                    // nothing: a goroutine and an object for each request
	Pool      = "pool"                     // goroutines
	PoolReuse = "pool-reuse"               // goroutines and objects
	AsPrinted = "pool-reuse, as published" // goroutines, and the objects of requests that fail
)

// Reuse is patterns of G9 with so many requests at once.
type Reuse struct {
	Patterns []string
	Bound    int
	Work     burst.Work    // of B
	Latency  time.Duration // of H, and at least half of that

	Rounds, Requests int           // Requests of a round: where instructions are counted
	Time             time.Duration // of a turn
	Seed             uint64
}

// reuses are the groups of G9, at a hundredth of the published times: waiting uses no
// processor time.
func (c Config) reuses() []experiment.Group {
	work := burst.PublishedWork
	work.Wait /= 100
	b := Reuse{Time: c.Time, Rounds: c.Rounds, Bound: atOnce, Work: work, Patterns: []string{Spawn, PoolReuse, Pool, Pool}}
	h := Reuse{Time: c.Time, Rounds: 8 * c.Rounds, Bound: atOnce, Latency: time.Millisecond, Patterns: append(b.Patterns, AsPrinted)} // they differ by a few per cent
	used := experiment.Figures{cpu.Key: turns.AllNanos, allocs.Key: turns.Mallocs, bytes.Key: turns.Bytes}
	inTurns := func(setup, role string, r Reuse) experiment.Group {
		const waiting = 2 // what waits needs so much longer for its processor time
		return c.inTurns(setup+", in turns", r.keys(setup), role, r.Rounds, waiting*r.Time, func(seed uint64) any { r.Seed = seed; return r }, used)
	}
	out := []experiment.Group{inTurns(asH, roleReuseH, h), inTurns(asB, roleReuseB, b)}
	if callgrind.Installed() {
		h.Rounds, h.Requests, h.Latency = 3, 1000, 0
		out = append(out, c.counts(h))
	}
	return out
}

// counts is the instructions of a request in the set-up of H.
func (c Config) counts(r Reuse) experiment.Group {
	keys := r.keys(countH)
	return experiment.Group{
		Keys: keys, Label: countH, Uses: .5, Expect: 5 * time.Second,
		Run: func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
			r.Seed = t.Seed
			spec := c.spec(RoleCountH, r)
			spec.MemoryCap = 0 // Valgrind has memory of its own
			counted, err := callgrind.Count(ctx, spec, len(keys), r.Rounds, r.Seed)
			if err != nil {
				return nil, err
			}
			runs := experiment.InTurns(keys, contestant.Exit{}, nil, nil)
			for i, all := range counted {
				for round := range all {
					all[round] /= float64(r.Requests)
				}
				ledger.Keep(&runs[i], instructions.Key, all)
			}
			return runs, nil
		},
	}
}

func (r Reuse) keys(setup string) []ledger.Key {
	return ledger.Keys(setup, boundKey(setup, r.Bound, "").Load, r.Patterns)
}

// play lets the patterns take turns by the processor's clock. A player does n requests,
// Bound at a time.
func (r Reuse) play(ctx context.Context, players []turns.Player) ([][]turns.Reading, error) {
	return turns.Play(ctx, turns.Config{Rounds: r.Rounds, Time: r.Time, Least: 2 * r.Bound, Seed: r.Seed, Clock: usage.CPU}, players)
}

// reuseH answers requests as experiment H was published.
func reuseH(ctx context.Context, r Reuse) ([][]turns.Reading, error) {
	players, end, err := r.services()
	if err != nil {
		return nil, err
	}
	defer end()
	return r.play(ctx, players)
}

// CountH does the same for callgrind.
func CountH(_ context.Context, r Reuse) (any, error) {
	players, end, err := r.services()
	if err != nil {
		return nil, err
	}
	defer end()
	var blocks []func()
	for _, p := range players {
		blocks = append(blocks, func() { p.Block(r.Requests) })
	}
	callgrind.Play(r.Rounds, r.Seed, blocks)
	return nil, nil
}

// services are the patterns of H over its store. Clients of a closed loop ask for patients;
// they cost the same with all patterns.
func (r Reuse) services() (players []turns.Player, end func(), err error) {
	var all []*patients.Service
	end = func() {
		for _, s := range all {
			s.Close()
		}
	}
	store := &patients.Simulated{MinLatency: r.Latency / 2, MaxLatency: r.Latency, ErrorRate: .05, Seed: r.Seed}
	for _, reused := range r.Patterns {
		name := map[string]string{Spawn: patients.Naive, Pool: patients.WorkerPool, PoolReuse: patients.Warm, AsPrinted: patients.Optimized}[reused]
		s, err := patients.New(name, store, patients.Config{Workers: r.Bound, Queue: r.Bound, Wait: time.Minute})
		if err != nil {
			end()
			return nil, nil, err
		}
		all = append(all, s)
		players = append(players, turns.Player{Name: reused, Block: func(n int) {
			var clients sync.WaitGroup
			var left atomic.Int64
			left.Store(int64(n))
			for range r.Bound {
				clients.Go(func() {
					for left.Add(-1) >= 0 {
						if reply, err := s.Look(context.Background(), "P000042"); err == nil {
							s.Release(reply)
						}
					}
				})
			}
			clients.Wait()
		}})
	}
	return players, end, nil
}

// reuseB does the work of experiment B, in its published pool where goroutines are reused.
func reuseB(ctx context.Context, r Reuse) ([][]turns.Reading, error) {
	players := make([]turns.Player, len(r.Patterns))
	for i, pattern := range r.Patterns {
		memory := burst.NewMemory(r.Work.Bytes, pattern == PoolReuse)
		one := func(i int64) int64 {
			b := memory.Take()
			time.Sleep(r.Work.Wait)
			memory.Give(b)
			return i + 1
		}
		prepare := inPublishedPool
		if pattern == Spawn {
			prepare = spawned
		}
		var run Batch
		players[i] = turns.Player{
			Name:  pattern,
			Ready: func(int) error { run = prepare(r.Bound, one); return nil },
			Block: func(n int) { run(n) },
		}
	}
	return r.play(ctx, players)
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
