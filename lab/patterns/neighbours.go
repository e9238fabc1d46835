package patterns

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/loadgen"
)

const (
	fewClients  = 40    // of the neighbour: they keep its pool busy
	manyClients = 5_000 // of the service beside it

	again  = time.Second            // after which a refused client of that asks again
	wrapUp = 100 * time.Millisecond // after the end queries are cut off
)

// neighbours is the scenario of H8: two services ask one database. The one that is looked at
// has a pool of the published size; what the other has is the contestant.
func neighbours(ctx context.Context, s scene) (results.Run, error) {
	querying, end := context.WithTimeout(ctx, s.Watch+wrapUp)
	defer end()
	database := service.NewDatabase(service.Work{Slots: MaxConnections, Min: s.MinLatency, Max: s.MaxLatency}, s.Seed)
	store := finder(func(id string) (*specimen.Patient, error) {
		if err := database.Ask(querying); err != nil {
			return nil, err
		}
		return specimen.Made(id), nil
	})
	load := func(contestant string, clients int, then func(error)) (good float64, err error) {
		a, err := s.by(contestant, store)
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
	extra := map[string]float64{}
	var beside sync.WaitGroup
	var err1 error
	if s.Contestant != Nobody {
		beside.Go(func() {
			extra["beside_good"], err1 = load(s.Contestant, manyClients, func(err error) {
				if outcome(err) != loadgen.Rejected {
					return
				}
				select {
				case <-time.After(again):
				case <-querying.Done():
				}
			})
		})
	}
	good, err2 := load(WorkerPool, fewClients, func(error) {})
	beside.Wait()
	extra[neighbourGood.Key] = good
	return results.Run{Extra: extra}, errors.Join(err1, err2)
}

var neighbourGood = ledger.Extra("neighbour_good", "the neighbour's good answers a second")
