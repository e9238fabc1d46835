package patterns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/load/judge"
	"github.com/spillway-go/spillway/load/loadgen"
	"github.com/spillway-go/spillway/load/usage"
)

// What is measured in resident memory, as set-ups.
const (
	Stalled = "stalled over HTTP" // H7
	Filled  = "a full pool"       // H13
)

var (
	stalledMemory     = ledger.Figure{Name: "growth of resident memory", Key: "grown_mib", OfKilled: true}
	stalledGoroutines = ledger.Extra("most_goroutines", "goroutines that answer")
	filledMemory      = ledger.Extra("grown_bytes", "growth of resident memory for each pool")
)

// stalledKey is the cell of H7's contestant under a pattern.
func stalledKey(pattern string) ledger.Key {
	return ledger.Key{Setup: Stalled, Load: "all users at once", Pattern: pattern}
}

// resident is the memory of this process now, after what is free has been given back.
func resident() float64 {
	debug.FreeOSMemory()
	now, _ := usage.Resident(os.Getpid())
	return float64(now)
}

// grown is the figure of a run in which the memory rose from before until now.
func grownFrom(before float64) (float64, error) {
	now, _ := usage.Resident(os.Getpid())
	if now == 0 || before == 0 {
		return 0, fmt.Errorf("this system does not tell what memory a process has")
	}
	return float64(now) - before, nil
}

// stalledServer is the contestant of H7: a pattern behind HTTP, until so many requests have
// come and wait for an answer of the store that does not come, or were refused. Each that waits
// keeps its connection, the connection's goroutine, and under naive its own.
func stalledServer(ctx context.Context, j Job, ready contestant.Ready) (figures map[string]float64, err error) {
	serving, enough := context.WithCancel(ctx)
	defer enough()
	var came atomic.Int64 // those in the queue are not among them
	shape, err := specimen.New(j.Pattern, finder(func(string) (*specimen.Patient, error) {
		came.Add(1)
		<-serving.Done()
		return nil, specimen.ErrStore
	}), specimen.Config{Workers: j.Workers, Queue: j.QueueSize, Wait: j.QueueWait})
	if err != nil {
		return nil, err
	}
	web := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := shape.Look(r.Context(), r.URL.Query().Get("id")); errors.Is(err, specimen.ErrFull) {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			came.Add(1)
		}
	})}
	before := resident()
	var grown float64
	var unknown error
	_, err = service.Serve(serving, ready, web, func(*service.Sample) {
		if figures == nil && int(came.Load())+shape.Queued() == j.Requests {
			grown, unknown = grownFrom(before)
			figures = map[string]float64{stalledMemory.Key: grown / (1 << 20), stalledGoroutines.Key: float64(shape.Goroutines())}
			enough()
		}
	})
	return figures, cmp.Or(err, unknown)
}

// stalledCell stalls as many requests as there are users, each with a connection of its own,
// and asks the server what they took. That it is killed for its memory is a result.
func (c Config) stalledCell(k ledger.Key) experiment.Cell {
	return experiment.Cell{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Beside: Stalled, Uses: .25, Expect: process + time.Second,
		Run: func(ctx context.Context, _ experiment.Trial) (run results.Run, err error) {
			ctx, end := context.WithCancel(ctx)
			defer end() // of the server, too, if the run fails
			j := Job{Config: c, Pattern: k.Pattern}
			j.Requests, j.Workers = c.Users, cmp.Or(c.Workers, someWorkers)
			server, err := service.Start(ctx, c.spec(roleStalled, j))
			if err != nil {
				return run, err
			}
			target, err := loadgen.NewHTTP(loadgen.HTTPConfig{URL: "http://" + server.Address + "/api/v1/patients?id=" + specimen.ID(1)})
			if err != nil {
				return run, err
			}
			defer target.Close()
			limited, enough := context.WithTimeout(server.Loading, 20*time.Second) // Stop says what is wrong
			defer enough()
			if _, err := loadgen.Run(limited, loadgen.Config{Target: target, Closed: &loadgen.Closed{Clients: c.Users, Requests: uint64(c.Users)}}); err != nil {
				return run, err
			}
			exit, err := server.Stop(ctx, &run.Extra)
			if exit.Killed != "" {
				run.Extra = map[string]float64{stalledMemory.Key: float64(exit.PeakRSS) / (1 << 20)}
			}
			run.Killed, run.Params, run.Process = exit.Killed, c.params(), results.Process{ReuseRate: -1}
			run.Process.PeakRSS = exit.PeakRSS
			return run, err
		}}
}

// addMemory adds what is measured in memory, each in a process of its own.
func (c Config) addMemory(p *experiment.Plan) {
	for _, pattern := range []string{Naive, WorkerPool} {
		if c.wants(pattern) {
			p.Cells = append(p.Cells, c.stalledCell(stalledKey(pattern)))
		}
	}
	for _, f := range fillings {
		if c.wants(WorkerPool) {
			k, spec := f.key(), c.spec(roleFilled, f)
			p.Cells = append(p.Cells, experiment.Cell{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Beside: Filled, Uses: .2, Expect: process, Run: experiment.Alone(spec)})
		}
	}
}

// filling is the input of H13's contestant. The small pool is measured as a hundred of them
// and the middle one as ten, so that the memory is as much as that of the large one: a
// process cannot see the fifty KB of one.
type filling struct{ Workers, Queue, Pools int }

var fillings = []filling{{20, 100, 100}, {200, 1_000, 10}, {2_000, 10_000, 1}}

func (f filling) key() ledger.Key {
	return ledger.Key{Setup: Filled, Load: fmt.Sprintf("%d workers, queue %d", f.Workers, f.Queue), Pattern: WorkerPool}
}

// formula is the published one, in bytes.
func (f filling) formula() float64 { return float64(f.Workers*2<<10 + f.Queue*specimen.JobSize) }

// filled is the contestant: its pools are made, every worker gets a look-up that lasts, and
// every place of the queues a job. There are no callers, which are not in the formula.
func filled(ctx context.Context, f filling) (figures map[string]float64, err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var busy atomic.Int64
	store := finder(func(string) (*specimen.Patient, error) {
		limited, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		busy.Add(1)
		select {
		case <-time.After(time.Hour):
		case <-limited.Done():
		}
		return nil, specimen.ErrStore
	})
	before := resident()
	pools := make([]*specimen.Service, f.Pools)
	for i := range pools {
		if pools[i], err = specimen.New(WorkerPool, store, specimen.Config{Workers: f.Workers, Queue: f.Queue, Wait: time.Minute}); err != nil {
			return nil, err
		}
		for n := range f.Workers + f.Queue {
			if _, err := pools[i].Submit(ctx, specimen.ID(n)); err != nil {
				return nil, err
			}
		}
	}
	if err := until(ctx, func() bool { return int(busy.Load()) == f.Workers*f.Pools }); err != nil {
		return nil, err
	}
	grown, err := grownFrom(before)
	end()
	for _, p := range pools {
		p.Close()
	}
	return map[string]float64{filledMemory.Key: grown / float64(f.Pools)}, err
}

var claimOfMemory = ledger.Claim{ID: "H13", Title: "the memory of a pool is workers × 2 KB + queue × the size of a job", Published: "a formula, no figure",
	Note:  fmt.Sprintf("A job is taken for all that it holds: its entry in the queue, the job, its two channels and its id, %d bytes. Callers, which wait for the answers, are not in the formula and not in the measurement; what a look-up holds while it lasts is in the measurement alone.", specimen.JobSize),
	Parts: []ledger.Part{{Subject: "growth of resident memory by a full pool/the formula", Unit: "x", Rule: judge.Between(0.67, 1.5), Published: []float64{1}, Spread: 0.05, Cases: casesOfMemory}},
}

func casesOfMemory(*ledger.Evidence) (out []ledger.Case) {
	for _, f := range fillings {
		out = append(out, ledger.Case{Setup: Shape + ", " + f.key().Load, Value: ledger.Of(f.key(), filledMemory).Over(ledger.Const(f.formula()))})
	}
	return out
}
