package patterns

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/workerpool"
)

// What becomes of requests that a pool has accepted, as set-ups.
const (
	Shutdown  = "the published shutdown" // H12
	LongLived = "long-lived connections" // H14

	allFull = "workers and queue full" // the loads
	allBusy = "one on each worker"

	Ours = "workerpool of ours" // Spillway's, of the published size
)

// accepted are their cells.
var accepted = []ledger.Key{
	{Setup: Shutdown, Load: allFull, Pattern: WorkerPool},
	{Setup: Shutdown, Load: allFull, Pattern: Ours},
	{Setup: LongLived, Load: allBusy, Pattern: Naive},
	{Setup: LongLived, Load: allBusy, Pattern: WorkerPool},
	{Setup: LongLived, Load: allBusy, Pattern: Ours},
}

const (
	shortRequests = 10
	inASecond     = time.Second
	callersWait   = 2 * time.Second // three times as long as a full pool needs
)

var (
	acceptedRequests = ledger.Extra("accepted", "accepted requests")
	lostRequests     = ledger.Extra("lost", "accepted requests without an answer")
	shortAnswered    = ledger.Extra("short_answered", "short requests answered within a second")
)

// addAccepted adds the cells, which run beside the longest load: they wait.
func (c Config) addAccepted(p *experiment.Plan) {
	for _, k := range accepted {
		if !c.wants(k.Pattern) {
			continue
		}
		cell := experiment.Cell{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Beside: besideSustained, Uses: .03, Expect: process + callersWait}
		cell.Run = func(ctx context.Context, t experiment.Trial) (results.Run, error) {
			j := Job{Config: c, Load: k.Setup, Pattern: k.Pattern, Seed: t.Seed}
			j.Workers = cmp.Or(j.Workers, someWorkers)
			run, err := experiment.Alone(c.spec(roleAccepted, j))(ctx, t)
			run.Params = c.params()
			return run, err
		}
		p.Cells = append(p.Cells, cell)
	}
}

// answering is what answers look-ups: the published shape, or ours.
type answering interface {
	Look(ctx context.Context, id string) (*specimen.Reply, error)
	Queued() int
	Close() // as its own shutdown does
}

// ours is Spillway's pool in the place of the published one.
type ours struct {
	*workerpool.Pool
	store specimen.Store
}

func (o ours) Look(ctx context.Context, id string) (*specimen.Reply, error) {
	return workerpool.Do(ctx, o.Pool, func(context.Context) (*specimen.Reply, error) {
		patient, err := o.store.Patient(id)
		return &specimen.Reply{Success: err == nil, Patient: patient}, err
	})
}

func (o ours) Queued() int { return o.Stats().Queued }

func (o ours) Close() {
	_ = o.Drain(context.Background()) // which nothing ends early
	o.Pool.Close()
}

// by makes the contestant over a store.
func (j Job) by(store specimen.Store) (answering, error) {
	if j.Pattern != Ours {
		return specimen.New(j.Pattern, store, specimen.Config{Workers: j.Workers, Queue: j.QueueSize, Wait: j.QueueWait})
	}
	const none = -1 // as the pool writes it: its 0 is a default
	pool, err := workerpool.New(workerpool.Config{MaxWorkers: j.Workers, QueueSize: cmp.Or(j.QueueSize, none), MaxWait: cmp.Or(j.QueueWait, none)})
	return ours{pool, store}, err
}

// finder is a store that is a function.
type finder func(id string) (*specimen.Patient, error)

// Patient calls f.
func (f finder) Patient(id string) (*specimen.Patient, error) { return f(id) }

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

// holding is a contestant whose look-ups last until its gate opens.
type holding struct {
	answering
	gate  chan struct{}
	began atomic.Int64
	short atomic.Bool // from now on they take no time
}

// ask asks for so many patients at the same time, and tells of each answer.
func (h *holding) ask(ctx context.Context, n int, answered func(error)) *sync.WaitGroup {
	var callers sync.WaitGroup
	for i := range n {
		callers.Go(func() {
			_, err := h.Look(ctx, specimen.ID(i))
			answered(err)
		})
	}
	return &callers
}

// playAccepted is the contestant.
func playAccepted(ctx context.Context, j Job) (map[string]float64, error) {
	h, store := &holding{gate: make(chan struct{})}, j.store()
	var err error
	h.answering, err = j.by(finder(func(id string) (*specimen.Patient, error) {
		if h.short.Load() {
			return specimen.Made(id), nil
		}
		h.began.Add(1)
		<-h.gate
		return store.Patient(id)
	}))
	if err != nil {
		return nil, err
	}
	if j.Load == Shutdown {
		return h.shutdown(ctx, j.Workers+j.QueueSize)
	}
	return h.longLived(ctx, j.Workers)
}

// shutdown is H12: the pool is shut down as soon as workers and queue are full. A request
// that was accepted is lost if its caller gets no answer at all.
func (h *holding) shutdown(ctx context.Context, accepted int) (map[string]float64, error) {
	var lost atomic.Int64
	limited, end := context.WithTimeout(ctx, callersWait)
	defer end()
	callers := h.ask(limited, accepted, func(err error) {
		if err != nil && limited.Err() != nil {
			lost.Add(1)
		}
	})
	err := until(limited, func() bool { return int(h.began.Load())+h.Queued() == accepted })
	close(h.gate)
	h.Close()
	callers.Wait()
	return map[string]float64{acceptedRequests.Key: float64(accepted), lostRequests.Key: float64(lost.Load())}, err
}

// longLived is H14: as many connections as there are workers stay open, each on a worker,
// while short requests come.
func (h *holding) longLived(ctx context.Context, workers int) (map[string]float64, error) {
	connections := h.ask(ctx, workers, func(error) {})
	err := until(ctx, func() bool { return int(h.began.Load()) == workers })
	h.short.Store(true)
	var answered atomic.Int64
	limited, end := context.WithTimeout(ctx, inASecond)
	defer end()
	h.ask(limited, shortRequests, func(err error) {
		if err == nil {
			answered.Add(1)
		}
	}).Wait()
	close(h.gate)
	connections.Wait()
	h.Close()
	return map[string]float64{shortAnswered.Key: float64(answered.Load())}, err
}
