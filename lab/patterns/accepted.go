package patterns

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
)

const (
	shortRequests = 10
	inASecond     = time.Second
	callersWait   = 2 * time.Second // three times as long as a full pool needs
)

func shutdownTakes(Config, string) time.Duration  { return callersWait }
func longLivedTakes(Config, string) time.Duration { return inASecond }

// gated is the store of a scene, in which a look-up waits for the gate first.
func (s *stage) gated(gate <-chan struct{}, began *atomic.Int64) finder {
	patients := s.simulated(s.Seed)
	return func(id string) (*specimen.Patient, error) {
		began.Add(1)
		<-gate
		return patients.Patient(id)
	}
}

// until looks every millisecond whether something is so, as long as ctx allows.
func until(ctx context.Context, so func() bool) error {
	for !so() {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// shutdown is the scenario of H12: the pool is shut down as soon as workers and queue are
// full. A request that was accepted is lost if its caller gets no answer at all.
func shutdown(ctx context.Context, s *stage) (results.Run, error) {
	gate, began := make(chan struct{}), new(atomic.Int64)
	a, err := s.by(s.Contestant, s.gated(gate, began))
	if err != nil {
		return results.Run{}, err
	}
	var callers sync.WaitGroup
	var lost atomic.Int64
	accepted := s.workers() + s.QueueSize
	limited, end := context.WithTimeout(ctx, callersWait)
	defer end()
	for n := range accepted {
		callers.Go(func() {
			if _, err := a.Look(limited, specimen.ID(n)); err != nil && limited.Err() != nil {
				lost.Add(1)
			}
		})
	}
	err = until(limited, func() bool { return int(began.Load())+a.Queued() == accepted })
	close(gate)
	a.Close()
	callers.Wait()
	return results.Run{Extra: map[string]float64{acceptedRequests.Key: float64(accepted), lostRequests.Key: float64(lost.Load())}}, err
}

// longLived is the scenario of H14: as many connections as there are workers stay open, each
// on a worker, while short requests come.
func longLived(ctx context.Context, s *stage) (results.Run, error) {
	gate, began, open := make(chan struct{}), new(atomic.Int64), new(atomic.Bool)
	patients := s.gated(gate, began)
	a, err := s.by(s.Contestant, finder(func(id string) (*specimen.Patient, error) {
		if open.Load() {
			return specimen.Made(id), nil
		}
		return patients(id)
	}))
	if err != nil {
		return results.Run{}, err
	}
	var callers sync.WaitGroup
	for n := range s.workers() {
		callers.Go(func() { _, _ = a.Look(ctx, specimen.ID(n)) })
	}
	err = until(ctx, func() bool { return int(began.Load()) == s.workers() })
	open.Store(true)
	var answered atomic.Int64
	var short sync.WaitGroup
	for n := range shortRequests {
		short.Go(func() {
			limited, end := context.WithTimeout(ctx, inASecond)
			defer end()
			if _, err := a.Look(limited, specimen.ID(s.workers()+n)); err == nil {
				answered.Add(1)
			}
		})
	}
	short.Wait()
	close(gate)
	callers.Wait()
	a.Close()
	return results.Run{Extra: map[string]float64{shortAnswered.Key: float64(answered.Load())}}, err
}

var (
	acceptedRequests = ledger.Extra("accepted", "accepted requests")
	lostRequests     = ledger.Extra("lost", "accepted requests without an answer")
	shortAnswered    = ledger.Extra("short_answered", "short requests answered within a second")
)
