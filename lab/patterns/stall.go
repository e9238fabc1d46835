package patterns

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/loadgen"
)

const (
	slow       = 30 * time.Second       // what the query takes from some moment on, over the model
	calm       = 500 * time.Millisecond // before that moment
	heldByThen = 10_000                 // goroutines that wait after as long, by the source: one for each request

	stallRate = heldByThen / 30 // requests a second to a real database: 10,000 while the query takes
	slowOneIn = 33              // of them asks for what is locked
)

func stallTakes(c Config, _ string) time.Duration     { return calm + c.Watch }
func realStallTakes(c Config, _ string) time.Duration { return 2*c.Calm + c.Stalled + 3*inTime }

// stall is the scenario of H7: requests go on to arrive at an even pace when the query
// suddenly takes 30 s. Each has a caller that waits for its answer, as in a server.
func stall(ctx context.Context, s *stage) (results.Run, error) {
	watched, end := context.WithCancel(ctx)
	stalls := time.Now().Add(calm)
	a, err := s.by(s.Contestant, finder(func(id string) (*specimen.Patient, error) {
		takes := (s.MinLatency + s.MaxLatency) / 2
		if !time.Now().Before(stalls) {
			takes = slow
		}
		if err := service.Pause(watched, takes); err != nil {
			return nil, err
		}
		return specimen.Made(id), nil
	}))
	if err != nil {
		end()
		return results.Run{}, err
	}
	var callers sync.WaitGroup
	defer func() {
		end()
		callers.Wait()
		a.Close()
	}()
	var run results.Run
	var seen []holding // at each point of the run's time line
	_, err = loadgen.Run(ctx, loadgen.Config{
		Open: loadgen.Constant(heldByThen/slow.Seconds(), calm+s.Watch), Interval: service.Step,
		Target: loadgen.TargetFunc(func(_ context.Context, n uint64) loadgen.Outcome {
			callers.Go(func() { _, _ = a.Look(watched, specimen.ID(int(n))) })
			return loadgen.OK // sent; its caller waits
		}),
		Progress: func(p loadgen.Snapshot) {
			at, held := p.Elapsed.Seconds(), a.Goroutines()
			run.Series = append(run.Series, results.Point{At: at, Goroutines: held})
			seen = append(seen, holding{at, float64(p.Sent), held})
		},
	})
	run.Extra = map[string]float64{}
	addGrowth(&run, seen, (calm + s.MaxLatency + service.Step).Seconds(), math.Inf(1)) // since the last quick look-ups have ended
	return run, err
}

// holding is how much a service held at a moment, in seconds, when so many requests had
// arrived.
type holding struct {
	at, arrived float64
	held        int
}

// addGrowth adds the most that a service held and, if there was time, how much of what it
// held came with each request in between two moments.
func addGrowth(run *results.Run, seen []holding, from, to float64) {
	most := 0
	var within []holding
	for _, h := range seen {
		if most = max(most, h.held); h.at >= from && h.at <= to {
			within = append(within, h)
		}
	}
	if len(seen) > 0 {
		run.Extra[mostGoroutines.Key] = float64(most)
	}
	if len(within) == 0 {
		return
	}
	first, last := within[0], within[len(within)-1]
	if last.arrived > first.arrived {
		run.Extra[growth.Key] = float64(last.held-first.held) / (last.arrived - first.arrived)
	}
}

var (
	growth         = ledger.Extra("growth", "goroutines for each request that arrives")
	mostGoroutines = ledger.Extra("most_goroutines", "most goroutines")
)

// realStall is the scenario of H7 on a real database. Of the requests a few read a table.
// After a while somebody else locks that table, as a migration does, and they wait for it,
// as long as they may.
func realStall(ctx context.Context, s *stage) (run results.Run, err error) {
	r, err := s.start(ctx, s.Contestant, someConnections, 0)
	if err != nil {
		return run, err
	}
	var callers sync.WaitGroup
	loading, leave := context.WithCancel(r.Loading)
	defer func() { leave(); callers.Wait() }()
	if _, err = arrive(loading, &callers, r.clients, s.Calm); err != nil {
		return run, err
	}
	before, err := arrive(loading, &callers, r.clients, s.Calm)
	if err != nil {
		return run, err
	}
	if before.good() == 0 {
		return run, errSilent
	}
	unlock, err := s.database.Lock(ctx, "directory")
	if err != nil {
		return run, err
	}
	locked := time.Now()
	during, err := arrive(loading, &callers, r.clients, s.Stalled)
	leave()
	callers.Wait() // who were not answered in time
	if err := errors.Join(err, unlock()); err != nil {
		return run, err
	}
	run.Series, run.Elapsed, run.Extra = during.line, s.Stalled.Seconds(), map[string]float64{
		fairGood.Key: before.rate(s.Calm), ownGood.Key: during.rate(s.Stalled),
	}
	during.lookups.addShare(&run)
	if err := r.stop(ctx, &run); err != nil || run.Killed != "" {
		return run, err
	}
	addGrowth(&run, heldSince(locked, r.Samples), s.Stalled.Seconds()*2/3, s.Stalled.Seconds()) // when there are no connections left
	addSamples(run.Series, r.Samples, locked)
	return run, nil
}

// heldSince is the operations that a service held after that moment, at which requests
// arrive at an even pace.
func heldSince(began time.Time, samples []service.Sample) (out []holding) {
	for _, s := range samples {
		at := s.At.Sub(began).Seconds()
		out = append(out, holding{at, at * stallRate, s.InFlight})
	}
	return out
}

// arrivals is what became of what was sent in a while.
type arrivals struct {
	lookups, searches, directory counted

	line []results.Point
}

func (a *arrivals) good() uint64 { return a.lookups.good.Load() + a.searches.good.Load() }

func (a *arrivals) rate(d time.Duration) float64 { return float64(a.good()) / d.Seconds() }

// arrive sends requests for so long, and then waits for as long as the last of them has to
// be answered. Callers that are not answered go on waiting until ctx ends.
func arrive(ctx context.Context, callers *sync.WaitGroup, c *clients, d time.Duration) (*arrivals, error) {
	a := &arrivals{lookups: counted{target: c.lookup}, searches: counted{target: c.search}, directory: counted{target: c.directory}}
	which := func(n uint64) *counted {
		switch {
		case n%slowOneIn == 0:
			return &a.directory
		case n%5 == 1:
			return &a.lookups
		}
		return &a.searches
	}
	var before uint64
	_, err := loadgen.Run(ctx, loadgen.Config{
		Open: loadgen.Constant(stallRate, d), Interval: service.Step,
		Target: loadgen.TargetFunc(func(_ context.Context, n uint64) loadgen.Outcome {
			callers.Go(func() { which(n).Do(ctx, n) })
			return loadgen.OK // sent
		}),
		Progress: func(p loadgen.Snapshot) {
			good := a.good()
			a.line = append(a.line, results.Point{At: p.Elapsed.Seconds(), OK: good - before})
			before = good
		},
	})
	if err != nil {
		return nil, err
	}
	_ = service.Pause(ctx, inTime)
	return a, nil
}
