package patterns

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/loadgen"
)

const (
	fewClients  = 40    // of the neighbour: they keep its pool busy
	manyClients = 5_000 // of the service beside it

	again  = time.Second            // after which a refused client of that asks again, over the model
	wrapUp = 100 * time.Millisecond // after the end queries of the model are cut off

	// renewed is when a service closes a connection of the real database and opens another:
	// services do so after minutes, so that a server that was away for a while gets its share again.
	renewed = 2 * time.Second
)

func neighboursTake(c Config, _ string) time.Duration     { return c.Watch + wrapUp }
func realNeighboursTake(c Config, _ string) time.Duration { return c.Calm + c.Beside }

// side loads one of two services on a database, and returns its good answers a second.
type side func() (good float64, err error)

// sideBySide is the scenario of H8: two services ask one database. The one that is looked at
// has a pool of the published size; what the other has is the contestant. It may be nobody.
func sideBySide(looked, other side) (map[string]float64, error) {
	var beside sync.WaitGroup
	var othersGood float64
	var failed error
	if other != nil {
		beside.Go(func() { othersGood, failed = other() })
	}
	good, err := looked()
	beside.Wait()
	figures := map[string]float64{neighbourGood.Key: good}
	if other != nil {
		figures["beside_good"] = othersGood
	}
	return figures, cmp.Or(err, failed)
}

// neighbours plays it over a model of the database.
func neighbours(ctx context.Context, s *stage) (run results.Run, err error) {
	querying, end := context.WithTimeout(ctx, s.Watch+wrapUp)
	defer end()
	database := service.NewDatabase(service.Work{Slots: MaxConnections, Min: s.MinLatency, Max: s.MaxLatency}, s.Seed)
	load := func(contestant string, clients int, then func(error)) side {
		return func() (good float64, err error) {
			a, err := s.by(contestant, asking(querying, database))
			if err != nil {
				return 0, err
			}
			defer a.Close()
			res, err := loadgen.Run(ctx, loadgen.Config{Target: askers(a, then), Closed: &loadgen.Closed{Clients: clients, Duration: s.Watch}})
			if err != nil {
				return 0, err
			}
			return float64(res.Outcomes[loadgen.OK].Count) / s.Watch.Seconds(), nil
		}
	}
	var other side
	if s.Contestant != Nobody {
		other = load(s.Contestant, manyClients, func(err error) {
			if outcome(err) == loadgen.Rejected {
				_ = service.Pause(querying, again)
			}
		})
	}
	run.Extra, err = sideBySide(load(WorkerPool, fewClients, func(error) {}), other)
	return run, err
}

// realNeighbours plays it on a real database, with each service in a process of its own and
// both as one role.
func realNeighbours(ctx context.Context, s *stage) (run results.Run, err error) {
	looked, err := s.start(ctx, Pooled, 0, renewed)
	if err != nil {
		return run, err
	}
	lasts := s.Calm + s.Beside
	loading, end := context.WithTimeout(looked.Loading, lasts+inTime)
	defer end()
	var beside *running
	var other side
	if s.Contestant != Nobody {
		if beside, err = s.start(ctx, s.Contestant, shared, renewed); err != nil {
			return run, err
		}
		other = func() (float64, error) {
			ctx, end := context.WithTimeout(loading, lasts)
			defer end()
			crowd := &counted{target: beside.search}
			_, err := loadgen.Run(ctx, loadgen.Config{Target: loadgen.TargetFunc(crowd.insist), Closed: &loadgen.Closed{Clients: manyClients, Duration: lasts}})
			return float64(crowd.good.Load()) / lasts.Seconds(), err
		}
	}
	run.Extra, err = sideBySide(func() (float64, error) {
		defer end() // of the crowd's last requests
		users := &counted{target: looked.search}
		res, err := loadgen.Run(loading, loadgen.Config{Target: users, Closed: &loadgen.Closed{Clients: fewClients, Duration: lasts}, Interval: service.Step})
		if err == nil && users.good.Load() == 0 && s.Contestant == Nobody {
			err = errSilent
		}
		if err != nil {
			return 0, err
		}
		run.Series, run.Elapsed = experiment.FromLoad(res).Series, s.Beside.Seconds()
		return experiment.GoodSince(res, s.Calm), nil
	}, other)
	if err != nil {
		return run, err
	}
	if beside == nil {
		return run, looked.stop(ctx, &run)
	}
	if err := beside.stop(ctx, &run); err != nil {
		return run, err
	}
	process, killed := run.Process, run.Killed
	err = looked.stop(ctx, &run)
	run.Process, run.Killed = process, killed
	return run, err
}

var neighbourGood = ledger.Extra("neighbour_good", "the neighbour's good answers a second")
