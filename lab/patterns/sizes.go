package patterns

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// series is pools of several sizes, in the published shape, over one store.
type series struct {
	setup   string
	axis    string        // what its points differ in
	latency time.Duration // of the store, on average
	compute bool          // it computes as long instead of waiting
	points  []point
}

// point is a pool of one size with its clients.
type point struct {
	load                    string
	at                      int // on the axis
	workers, queue, clients int
	twin                    bool
}

// The published pool under sustained load.
const (
	someWorkers = 20
	someQueue   = 100
	someClients = 500
)

// someSizes are pools of any machine, beside those that the published rule makes for the
// cores of this one.
var someSizes = []int{10, publishedWorkers, 100, 500}

// publishedWorkers are what the published rule gives as its example for eight cores.
const publishedWorkers = 30

// sized is the pools that H5 compares over a store: up to four workers for each core, and
// some others, each with the queue that the rule gives it.
func (r rule) sized() series {
	s := r.series
	cores := runtime.GOMAXPROCS(0)
	workers := slices.Clone(someSizes)
	for times := range 4 {
		workers = append(workers, (times+1)*cores)
	}
	slices.Sort(workers)
	for _, n := range slices.Compact(workers) {
		p := point{load: r.load(n), at: n, workers: n, queue: r.queue * n, clients: someClients}
		s.points = append(s.points, p)
		if n == r.most*cores {
			p.twin = true
			s.points = append(s.points, p)
		}
	}
	return s
}

// sweeps change one size of the published pool and leave the others.
func sweeps() []series {
	sweep := func(axis string, load string, sizes []int, set func(p *point, n int)) series {
		s := series{setup: "sweep of " + axis, axis: axis, latency: 75 * time.Millisecond}
		for _, n := range sizes {
			p := point{load: fmt.Sprintf(load, n), at: n, workers: someWorkers, queue: someQueue, clients: someClients}
			set(&p, n)
			s.points = append(s.points, p)
		}
		return s
	}
	return []series{
		sweep("workers", "%d workers", []int{10, 20, 50, 100, 200, 500}, func(p *point, n int) { p.workers = n }),
		sweep("queue places", "queue of %d", []int{0, 20, 50, 100, 200, 500, 1_000, 5_000}, func(p *point, n int) { p.queue = n }),
		sweep("clients", "%d clients", []int{10, 20, 50, 100, 200, 500, 1_000}, func(p *point, n int) { p.clients = n }),
	}
}

// axes are what the loads of these set-ups count.
func axes() map[string]string {
	out := map[string]string{}
	for _, r := range rules {
		out[r.setup] = r.axis
	}
	for _, s := range sweeps() {
		out[s.setup] = s.axis
	}
	return out
}

// series are those that a session measures.
func (c Config) series() (out []series) {
	if !c.wants(WorkerPool) {
		return nil
	}
	for _, r := range rules {
		out = append(out, r.sized())
	}
	if c.Sweep {
		out = append(out, sweeps()...)
	}
	return out
}

// waits reports whether its pools only wait: they are loaded at the same time. Others keep
// the processors busy, and take turns.
func (s series) waits() bool { return s.latency >= 10*time.Millisecond }

// job is the load of a pool.
func (s series) job(c Config, p point, seed uint64) Job {
	j := Job{Config: c, Load: p.load, Pattern: WorkerPool, Seed: seed, Time: c.SizeTime}
	j.Requests, j.Clients, j.Workers, j.QueueSize = 0, p.clients, p.workers, p.queue
	j.MinLatency, j.MaxLatency = s.latency*2/3, s.latency*4/3 // like the published 50 to 100 ms
	if s.compute {
		j.Compute = s.latency
	}
	if !s.waits() {
		j.Time /= 60
	}
	return j
}

// group measures the pools of a series in one process.
func (c Config) group(s series) experiment.Group {
	g := experiment.Group{Expect: process}
	for _, p := range s.points {
		g.Keys = append(g.Keys, ledger.Key{Setup: s.setup, Load: p.load, Pattern: WorkerPool, Twin: p.twin})
		j := s.job(c, p, 0)
		inside := min(p.clients, p.workers+p.queue)
		takes := j.Time + max(j.QueueWait, time.Duration(float64(inside)/float64(p.workers)*float64(s.latency)))
		if s.waits() {
			g.Expect = max(g.Expect, process+takes)
		} else {
			g.Expect += j.Time + j.QueueWait
		}
	}
	if s.waits() {
		g.Beside, g.Uses = besideSustained, .05
	} else {
		g.Label = "pools of several sizes, " + s.setup
	}
	g.Run = func(ctx context.Context, t experiment.Trial) (runs []results.Run, err error) {
		in := sizing{AtOnce: s.waits(), Seed: t.Seed}
		for _, p := range s.points {
			in.Jobs = append(in.Jobs, s.job(c, p, t.Seed))
		}
		_, err = experiment.Together(ctx, contestant.Spec{Role: roleSizes, Input: in, MemoryCap: c.memory()}, &runs)
		for i := range min(len(runs), len(s.points)) {
			runs[i].Params["size"], runs[i].Params["gomaxprocs"] = float64(s.points[i].at), float64(runtime.GOMAXPROCS(0))
		}
		return runs, err
	}
	return g
}

// sizing is the input of a contestant that loads several pools.
type sizing struct {
	Jobs   []Job
	AtOnce bool // otherwise in turns, in a random order
	Seed   uint64
}

// pools loads them.
func pools(ctx context.Context, in sizing) ([]results.Run, error) {
	runs, errs := make([]results.Run, len(in.Jobs)), make([]error, len(in.Jobs))
	load := func(i int) {
		runs[i], errs[i] = published(ctx, in.Jobs[i])
		runs[i].Process = results.Process{ReuseRate: -1} // all of them share it
	}
	var all sync.WaitGroup
	for _, i := range rand.New(rand.NewPCG(in.Seed, 5)).Perm(len(in.Jobs)) {
		if in.AtOnce {
			all.Go(func() { load(i) })
		} else {
			load(i)
		}
	}
	all.Wait()
	return runs, errors.Join(errs...)
}
