package patterns

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
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
	"github.com/spillway-go/spillway/load/judge"
	"github.com/spillway-go/spillway/load/usage"
)

// What is measured in resident memory, as set-ups.
const (
	Stalled = "stalled over HTTP" // H7
	Filled  = "a full pool"       // H13
)

var (
	stalledMemory = ledger.Figure{Name: "growth of resident memory", Key: "grown_mib", OfKilled: true}
	filledMemory  = ledger.Extra("grown_bytes", "growth of resident memory for each pool")
)

var stalledKey = ledger.Key{Setup: Stalled, Load: "all users at once", Pattern: Naive}

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

// stalledServer is the contestant of H7's memory: naive behind HTTP, until so many requests
// wait for an answer of the store that does not come. Each keeps its connection, the
// connection's goroutine, and its own.
func stalledServer(ctx context.Context, requests int, ready contestant.Ready) (grown float64, err error) {
	var waiting atomic.Int64
	naive, err := specimen.New(Naive, finder(func(string) (*specimen.Patient, error) {
		waiting.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	}), specimen.Config{})
	if err != nil {
		return 0, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	web := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply, err := naive.Look(r.Context(), r.URL.Query().Get("id"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(reply)
	})}
	defer web.Close()
	go func() { _ = web.Serve(listener) }()
	before := resident()
	if err := ready(listener.Addr().String()); err != nil {
		return 0, err
	}
	if err := until(ctx, func() bool { return int(waiting.Load()) == requests }); err != nil {
		return 0, err
	}
	grown, err = grownFrom(before)
	return grown / (1 << 20), err
}

// stalledCell stalls as many requests as there are users, and asks the server what they took.
func (c Config) stalledCell() experiment.Cell {
	k := stalledKey
	return experiment.Cell{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Expect: process + 2*time.Second,
		Run: func(ctx context.Context, _ experiment.Trial) (run results.Run, err error) {
			var address string
			server, err := contestant.Start(ctx, c.spec(roleStalled, c.Users), &address)
			if err != nil {
				return run, err
			}
			began := time.Now()
			clients := make([]net.Conn, 0, c.Users)
			defer func() {
				for _, conn := range clients {
					conn.Close()
				}
			}()
			for n := range c.Users {
				conn, err := net.Dial("tcp", address)
				if err == nil {
					clients = append(clients, conn)
					_, err = io.WriteString(conn, "GET /api/v1/patients?id="+specimen.ID(n)+" HTTP/1.1\r\nHost: lab\r\n\r\n")
				}
				select {
				case <-server.Done(): // killed for its memory: a result
				default:
					if err != nil {
						_, _ = server.Stop(ctx, nil)
						return run, fmt.Errorf("request %d of %d could not be sent: %w", n+1, c.Users, err)
					}
				}
			}
			select {
			case <-server.Done():
			case <-ctx.Done():
			case <-time.After(10 * time.Second): // Stop says what is wrong
			}
			var grown float64
			exit, err := server.Stop(ctx, &grown)
			if exit.Killed != "" {
				grown = float64(exit.PeakRSS) / (1 << 20)
			}
			run = results.Run{Killed: exit.Killed, Elapsed: time.Since(began).Seconds(), Params: scene{Config: c}.params(), Process: results.Process{ReuseRate: -1}, Extra: map[string]float64{stalledMemory.Key: grown}}
			run.Process.PeakRSS = exit.PeakRSS
			return run, err
		}}
}

// addMemory adds what is measured in memory, each alone.
func (c Config) addMemory(p *experiment.Plan) {
	if c.wants(Naive) {
		p.Cells = append(p.Cells, c.stalledCell())
	}
	for _, f := range fillings {
		if c.wants(WorkerPool) {
			p.Alone(f.key(), process, c.spec(roleFilled, f))
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
