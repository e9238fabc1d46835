package patterns

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/loadgen"
)

// TooLong is a wait for a connection that counts as none.
const TooLong = 10 * time.Second

// crowdTakes is as long as the connections need for everybody.
func crowdTakes(c Config, _ string) time.Duration {
	return time.Duration(float64(c.Users) / MaxConnections * float64(c.MinLatency+c.MaxLatency) / 2)
}

// crowd is the scenario of H6: all users ask at the same moment, each once. A look-up needs
// a connection of its own.
func crowd(ctx context.Context, s *stage) (results.Run, error) {
	server := service.NewConnections(MaxConnections, s.Contestant == Queueing)
	patients := s.simulated(s.Seed)
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

const criticalRate = 50 // look-ups a second for patients at hand, all the time

func realCrowdTakes(c Config, contestant string) time.Duration {
	return c.calmBefore(contestant) + c.crowdLasts()
}

// calmBefore is longer for a service that has to find out how much it can do.
func (c Config) calmBefore(contestant string) time.Duration {
	if contestant == Adaptive {
		return 3 * c.Calm
	}
	return c.Calm
}

// crowdLasts is less than the connections need for all users, so that there is always
// somebody left to answer.
func (c Config) crowdLasts() time.Duration { return max(crowdTakes(c, "")*4/5, time.Second) }

// realCrowd is the scenario of H6 on a real database. First as many clients search as there
// are connections: the capacity. Then all users search at the same moment, and each does so
// again until it is answered. Meanwhile some look-ups are critical.
func realCrowd(ctx context.Context, s *stage) (run results.Run, err error) {
	r, err := s.start(ctx, s.Contestant, someConnections, 0)
	if err != nil {
		return run, err
	}
	calm := s.calmBefore(s.Contestant)
	before, err := loadgen.Run(r.Loading, loadgen.Config{Target: r.search, Closed: &loadgen.Closed{Clients: someConnections, Duration: calm}, Interval: service.Step})
	if err != nil {
		return run, err
	}
	lasts, began := s.crowdLasts(), time.Now()
	crowded, end := context.WithTimeout(r.Loading, lasts)
	defer end()
	critical := &counted{target: r.lookup}
	var beside sync.WaitGroup
	var failed error
	beside.Go(func() {
		_, failed = loadgen.Run(crowded, loadgen.Config{Target: critical, Open: loadgen.Constant(criticalRate, lasts-min(inTime, lasts/2)), Timeout: inTime})
	})
	users := &counted{target: r.search}
	res, err := loadgen.Run(crowded, loadgen.Config{
		Target:   loadgen.TargetFunc(users.insist),
		Closed:   &loadgen.Closed{Clients: s.Users, Requests: uint64(s.Users)},
		Interval: service.Step,
	})
	beside.Wait()
	if err := cmp.Or(err, failed); err != nil {
		return run, err
	}
	good := float64(users.good.Load()+critical.good.Load()) / lasts.Seconds()
	run.Series = experiment.FromLoad(res).Series
	run.Elapsed, run.Extra = lasts.Seconds(), map[string]float64{
		fairGood.Key: experiment.GoodSince(before, calm-s.Calm/2), ownGood.Key: good,
		"asked": float64(users.sent.Load()),
	}
	critical.addShare(&run)
	if run.Extra[fairGood.Key] == 0 {
		return run, errSilent
	}
	err = r.stop(ctx, &run)
	addSamples(run.Series, r.Samples, began)
	return run, err
}

// The figures, all but the first on a real database alone.
var (
	withoutConnection  = ledger.Extra("without_connection", "requests without a connection")
	refusedConnections = ledger.Extra("refused_connections", "connections that PostgreSQL refused")
	fairGood           = ledger.Extra("fair_good", "good answers a second without it")
	ownGood            = ledger.Extra("own_good", "good answers a second")
	criticalShare      = ledger.Extra("critical_share", "share of the critical look-ups answered well in time")
)
