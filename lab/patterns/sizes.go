package patterns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/postgres"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
)

// series is pools of several sizes, in the published shape, over one store.
type series struct {
	setup   string
	axis    string        // what its points differ in
	latency time.Duration // of the store, on average
	store   storeKind
	points  []point
}

// storeKind is what a series asks.
type storeKind int

const (
	waiting   storeKind = iota // any number of look-ups at one time, each as long as the first
	modelled                   // service.Database
	computing                  // look-ups that compute as long
	onSQLite
	onServer // PostgreSQL
)

// point is a pool of one size with its clients.
type point struct {
	ledger.Key
	at                      int // on the axis
	workers, queue, clients int
}

// The published pool under sustained load.
const (
	someWorkers = 20
	someQueue   = 100
	someClients = 500
)

// someSizes are pools of any machine, beside those that the published rule makes for the
// cores of this one.
var someSizes = []int{publishedWorkers, 100, 300}

// publishedWorkers are what the published rule gives as its example for eight cores.
const publishedWorkers = 30

// sized is the pools that H5 compares over a store: up to four workers for each core, and
// some others, each with several queues.
func (r rule) sized() series {
	s := r.series
	cores := runtime.GOMAXPROCS(0)
	workers := slices.Clone(someSizes)
	for times := range 4 {
		workers = append(workers, (times+1)*cores)
	}
	slices.Sort(workers)
	for _, n := range slices.Compact(workers) {
		for _, places := range queues {
			if s.store == waiting && places != r.queue {
				continue
			}
			for _, k := range r.key(n, places).AndTwin(n == r.most*cores && places == r.queue) {
				s.points = append(s.points, point{k, n, n, places * n, someClients})
			}
		}
	}
	return s
}

// sweeps change one size of the published pool and leave the others.
func sweeps() []series {
	sweep := func(axis, load string, sizes []int, set func(p *point, n int)) series {
		s := series{setup: "sweep of " + axis, axis: axis, latency: 75 * time.Millisecond}
		for _, n := range sizes {
			p := point{ledger.Key{Setup: s.setup, Load: fmt.Sprintf(load, n), Pattern: WorkerPool}, n, someWorkers, someQueue, someClients}
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
	for _, r := range append(rules, boundless) {
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
	for _, r := range append(rules, boundless) {
		if r.store != onServer || c.Postgres != "" {
			out = append(out, r.sized())
		}
	}
	if c.Sweep {
		out = append(out, sweeps()...)
	}
	return out
}

// virtual reports whether its pools only wait. They run in virtual time, all at once. Others
// keep the processors busy, and take turns.
func (s series) virtual() bool { return s.store == waiting || s.store == modelled }

// job is the load of a pool.
func (s series) job(c Config, p point, seed uint64) Job {
	j := Job{Config: c, Load: p.Load, Pattern: WorkerPool, Seed: seed, Time: c.SizeTime}
	j.Requests, j.Clients, j.Workers, j.QueueSize = 0, p.clients, p.workers, p.queue
	j.MinLatency, j.MaxLatency = s.latency*2/3, s.latency*4/3 // like the published 50 to 100 ms
	switch s.store {
	case modelled:
		j.Slots = MaxConnections
	case computing:
		j.Compute = s.latency
	case onServer:
		j.Patients = scarcePatients
	}
	if j.Time /= 100; s.virtual() {
		j.Time = c.SizeTime / 3
	}
	return j
}

// group measures the pools of a series in one process.
func (c Config) group(s series, database *string) experiment.Group {
	g := experiment.Group{Expect: process, Label: "pools of several sizes, " + s.setup}
	for _, p := range s.points {
		g.Keys = append(g.Keys, p.Key)
		if s.virtual() { // as long as it takes to compute
			g.Expect += 60 * time.Millisecond
		} else {
			g.Expect += c.SizeTime/100 + c.QueueWait/4
		}
	}
	if s.store == onServer { // its database is made and dropped
		g.Expect += 2 * process
	}
	spec := c.spec(roleComputing, nil)
	switch {
	case s.virtual():
		spec.Program, spec.Role = virtual, RoleVirtual
	case s.store != computing:
		spec.Program, spec.Role = program, RoleSizes
	}
	g.Run = func(ctx context.Context, t experiment.Trial) (runs []results.Run, err error) {
		in := Sizing{AtOnce: s.virtual(), Seed: t.Seed, Patients: c.Patients}
		for _, p := range s.points {
			in.Jobs = append(in.Jobs, s.job(c, p, t.Seed))
		}
		switch s.store {
		case onSQLite:
			in.File = *database
		case onServer:
			var server *postgres.Database
			if server, err = c.Postgres.Open(ctx, postgres.Population{Patients: scarcePatients}); err != nil {
				return nil, err
			}
			defer func() { err = cmp.Or(err, server.Close()) }()
			in.URL = server.URL
		}
		spec.Input = in
		_, err = experiment.Together(ctx, spec, &runs)
		for i := range min(len(runs), len(s.points)) {
			runs[i].Params["size"], runs[i].Params["gomaxprocs"] = float64(s.points[i].at), float64(runtime.GOMAXPROCS(0))
		}
		return runs, err
	}
	return g
}

// Sizing is the input of a contestant that loads several pools.
type Sizing struct {
	Jobs     []Job
	AtOnce   bool // otherwise in turns, in a random order
	Seed     uint64
	File     string // of SQLite, with so many patients
	Patients int
	URL      string // of PostgreSQL's database
}

// SimulatedPools loads pools over a simulated store, or a model of a database, each.
func SimulatedPools(ctx context.Context, in Sizing) ([]results.Run, error) {
	return Pools(ctx, in, func(j Job) specimen.Store {
		if j.Slots == 0 {
			return j.store()
		}
		database := service.NewDatabase(service.Work{Slots: j.Slots, Min: j.MinLatency, Max: j.MaxLatency}, j.Seed)
		return asking(ctx, database)
	})
}

// Pools loads the pools, each over the store of its job.
func Pools(ctx context.Context, in Sizing, store func(Job) specimen.Store) ([]results.Run, error) {
	runs, errs := make([]results.Run, len(in.Jobs)), make([]error, len(in.Jobs))
	load := func(i int) {
		runs[i], errs[i] = in.Jobs[i].over(ctx, store(in.Jobs[i]), nil)
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
