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

// TooLong is a wait for a connection that counts as none.
const TooLong = 10 * time.Second

// crowdTakes is as long as the connections need for everybody.
func crowdTakes(c Config) time.Duration {
	return time.Duration(float64(c.Users) / MaxConnections * float64(c.MinLatency+c.MaxLatency) / 2)
}

// crowd is the scenario of H6: all users ask at the same moment, each once. A look-up needs
// a connection of its own.
func crowd(ctx context.Context, s scene) (results.Run, error) {
	server := service.NewConnections(MaxConnections, s.Contestant == Queueing)
	patients := &specimen.Simulated{MinLatency: s.MinLatency, MaxLatency: s.MaxLatency, ErrorRate: s.ErrorRate, Seed: s.Seed}
	var mu sync.Mutex
	var without int // look-ups that got no connection, or too late
	var longest time.Duration
	a, err := s.by(s.Contestant, finder(func(id string) (found *specimen.Patient, err error) {
		began, waited := time.Now(), time.Duration(0)
		err = server.Query(ctx, func() (err error) {
			waited = time.Since(began)
			found, err = patients.Patient(id)
			return err
		})
		mu.Lock()
		defer mu.Unlock()
		if longest = max(longest, waited); errors.Is(err, service.ErrConnections) || waited > TooLong {
			without++
		}
		return found, err
	}))
	if err != nil {
		return results.Run{}, err
	}
	defer a.Close()
	res, err := loadgen.Run(ctx, loadgen.Config{Target: askers(a, func(error) {}), Closed: &loadgen.Closed{Clients: s.Users, Requests: uint64(s.Users)}})
	if err != nil {
		return results.Run{}, err
	}
	return results.Run{Extra: map[string]float64{
		withoutConnection.Key: float64(without), "longest_wait_ns": float64(longest),
		"answered": float64(res.Outcomes[loadgen.OK].Count), "refused": float64(res.Outcomes[loadgen.Rejected].Count),
	}}, nil
}

var withoutConnection = ledger.Extra("without_connection", "requests without a connection")
