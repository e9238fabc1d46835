package patterns

import (
	"context"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/loadgen"
)

const (
	slow       = 30 * time.Second       // what the query takes from some moment on
	calm       = 500 * time.Millisecond // before that moment
	heldByThen = 10_000                 // goroutines that wait after as long, by the source: one for each request
)

// stall is the scenario of H7: requests go on to arrive at an even pace when the query
// suddenly takes 30 s. Each has a caller that waits for its answer, as in a server.
func stall(ctx context.Context, s scene) (results.Run, error) {
	watched, end := context.WithCancel(ctx)
	stalls := time.Now().Add(calm)
	a, err := s.by(s.Contestant, finder(func(id string) (*specimen.Patient, error) {
		takes := (s.MinLatency + s.MaxLatency) / 2
		if !time.Now().Before(stalls) {
			takes = slow
		}
		select {
		case <-time.After(takes):
			return specimen.Made(id), nil
		case <-watched.Done():
			return nil, watched.Err()
		}
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
	var arrived []uint64 // at each point of the run's time line
	_, err = loadgen.Run(ctx, loadgen.Config{
		Open: loadgen.Constant(heldByThen/slow.Seconds(), calm+s.Watch), Interval: service.Step,
		Target: loadgen.TargetFunc(func(_ context.Context, n uint64) loadgen.Outcome {
			callers.Go(func() { _, _ = a.Look(watched, specimen.ID(int(n))) })
			return loadgen.OK // sent; its caller waits
		}),
		Progress: func(p loadgen.Snapshot) {
			run.Series = append(run.Series, results.Point{At: p.Elapsed.Seconds(), Goroutines: a.Goroutines()})
			arrived = append(arrived, p.Sent)
		},
	})
	run.Extra = map[string]float64{}
	addGrowth(&run, arrived, calm+s.MaxLatency+service.Step)
	return run, err
}

// addGrowth adds the most goroutines that there were and, if there was time, how many came
// with each request since the last quick look-ups had ended.
func addGrowth(run *results.Run, arrived []uint64, since time.Duration) {
	most, first, last := 0, -1, len(run.Series)-1
	for i, p := range run.Series {
		if first < 0 && p.At >= since.Seconds() {
			first = i
		}
		most = max(most, p.Goroutines)
	}
	if last >= 0 {
		run.Extra[mostGoroutines.Key] = float64(most)
	}
	if first >= 0 && arrived[last] > arrived[first] {
		run.Extra[growth.Key] = float64(run.Series[last].Goroutines-run.Series[first].Goroutines) / float64(arrived[last]-arrived[first])
	}
}

var (
	growth         = ledger.Extra("growth", "goroutines for each request that arrives")
	mostGoroutines = ledger.Extra("most_goroutines", "most goroutines")
)
