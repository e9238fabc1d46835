package patterns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/postgres"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

// rule is the published rule of thumb for a pool over a store that has a capacity.
type rule struct {
	part, setup string        // of H5
	least, most int           // workers for each core
	queue       int           // places for each worker
	computes    time.Duration // of a look-up that asks no database; 0: it asks one
	server      bool          // which is PostgreSQL
}

var rules = []rule{
	{part: "sqlite", setup: OnSQLite + ", look-ups", least: 2, most: 4, queue: 5},
	{part: "postgres", setup: OnPostgres + ", look-ups", least: 2, most: 4, queue: 5, server: true},
	{part: "cpu", setup: "look-ups that compute", least: 1, most: 1, queue: 2, computes: 200 * time.Microsecond},
}

// rules are those that a session measures.
func (c Config) rules() []rule {
	return slices.DeleteFunc(slices.Clone(rules), func(r rule) bool { return r.server && c.Postgres == "" || !c.wants(WorkerPool) })
}

// publishedWorkers are what the published rule gives as its example for eight cores.
const publishedWorkers = 30

// queues are the places for each worker that are compared.
var queues = []int{0, 2, 5, 20}

// point is a pool of one size.
type point struct {
	ledger.Key
	workers, places int // for each of them
}

// key is the pool with so many workers and places for each of them.
func (r rule) key(workers, places int) ledger.Key {
	return ledger.Key{Setup: r.setup, Load: fmt.Sprintf("%d workers", workers), Pattern: fmt.Sprintf("queue %d × workers", places)}
}

// pools are those that are compared: up to four workers for each core, and some others, each
// with the rule's queue, and the rule's largest with several queues.
func (r rule) pools() (out []point) {
	cores := runtime.GOMAXPROCS(0)
	workers := []int{cores, 2 * cores, 3 * cores, 4 * cores, publishedWorkers, 100}
	slices.Sort(workers)
	for _, n := range slices.Compact(workers) {
		for _, places := range queues {
			largest := n == r.most*cores
			if places != r.queue && !largest {
				continue // the queue is an axis of its own
			}
			for _, k := range r.key(n, places).AndTwin(largest && places == r.queue) {
				out = append(out, point{k, n, places})
			}
		}
	}
	return out
}

// sized is the load of a pool: the clients are those of the published sustained load.
func (c Config) sized(r rule, p point, seed uint64) Job {
	j := Job{Config: c, Load: p.Load, Pattern: WorkerPool, Seed: seed, Time: c.SizeTime / 12, Compute: r.computes}
	j.Requests, j.Clients, j.Workers, j.QueueSize = 0, sizes[Sustained][1], p.workers, p.places*p.workers
	if r.server {
		j.Patients = scarcePatients
	}
	return j
}

// group measures the pools over a store in one process, in turns.
func (c Config) group(r rule, file *string) experiment.Group {
	pools := r.pools()
	g := experiment.Group{Expect: process + time.Duration(len(pools))*(c.SizeTime/12+c.QueueWait/4), Label: "pools of several sizes, " + r.setup}
	for _, p := range pools {
		g.Keys = append(g.Keys, p.Key)
	}
	spec := c.patient(RoleSizes, nil)
	switch {
	case r.computes > 0:
		spec = c.spec(roleComputing, nil)
	case r.server: // its database is made and dropped
		g.Expect += 2 * process
	}
	g.Run = func(ctx context.Context, t experiment.Trial) (runs []results.Run, err error) {
		in := Sizing{Seed: t.Seed, File: *file, Patients: c.Patients}
		for _, p := range pools {
			in.Jobs = append(in.Jobs, c.sized(r, p, t.Seed))
		}
		if r.server {
			var server *postgres.Database
			if server, err = c.Postgres.Open(ctx, postgres.Population{Patients: scarcePatients}); err != nil {
				return nil, err
			}
			defer func() { err = cmp.Or(err, server.Close()) }()
			in.URL = server.URL
		}
		spec.Input = in
		_, err = experiment.Together(ctx, spec, &runs)
		for i := range min(len(runs), len(pools)) {
			runs[i].Params["size"], runs[i].Params["gomaxprocs"] = float64(pools[i].workers), float64(runtime.GOMAXPROCS(0))
		}
		return runs, err
	}
	return g
}

// Sizing is the input of a contestant that loads several pools.
type Sizing struct {
	Jobs     []Job
	Seed     uint64
	File     string // of SQLite, with so many patients
	Patients int
	URL      string // of PostgreSQL's database, which is asked instead
}

// Pools loads the pools over a store, or each over that of its job, in turns and in a random order.
func Pools(ctx context.Context, in Sizing, over specimen.Store) ([]results.Run, error) {
	runs, errs := make([]results.Run, len(in.Jobs)), make([]error, len(in.Jobs))
	for _, i := range rand.New(rand.NewPCG(in.Seed, 5)).Perm(len(in.Jobs)) {
		store := over
		if store == nil {
			store = in.Jobs[i].store()
		}
		runs[i], errs[i] = in.Jobs[i].over(ctx, store)
		runs[i].Process = results.Process{ReuseRate: -1} // all of them share it
	}
	return runs, errors.Join(errs...)
}

// axes are what the loads of these set-ups count.
func axes() map[string]string {
	out := map[string]string{}
	for _, r := range rules {
		out[r.setup] = "workers"
	}
	return out
}

// named is how a session gets a PostgreSQL server.
const named = "name a server with --postgres, or set " + postgres.Env + "."

// best compares the better of the rule's sizes, each with the rule's queue, with the best of
// all sizes and queues; beside it stands the published example for eight cores.
func (r rule) best(e *ledger.Evidence) []ledger.Case {
	cores := 8 // as published
	if n := e.Param("gomaxprocs"); n >= 1 {
		cores = int(n)
	}
	good := func(workers int) ledger.Term { return ledger.Of(r.key(workers, r.queue), ledger.Goodput) }
	var ruled []ledger.Term
	for times := r.least; times <= r.most; times++ {
		ruled = append(ruled, good(times*cores))
	}
	measured := func(k ledger.Key) bool { return k.Setup == r.setup }
	most := ledger.Best(slices.Concat(e.All(ledger.Goodput, measured), ruled, []ledger.Term{good(publishedWorkers)})...)
	decides := ledger.Case{Setup: fmt.Sprintf("%s, %d to %d workers", r.setup, r.least*cores, r.most*cores), Value: ledger.Best(ruled...).Over(most)}
	if r.least == r.most {
		decides.Setup = fmt.Sprintf("%s, %d workers", r.setup, r.least*cores)
	}
	if len(e.Keys(measured)) == 0 {
		decides.Setup = r.setup
		decides.Open = "Not measured: a session without PostgreSQL measures pools of several sizes last, if --budget leaves time; " + named
		if r.server {
			decides.Open = "PostgreSQL was not measured: " + named
		}
	}
	cases := []ledger.Case{decides}
	if r.least < r.most {
		cases = append(cases, ledger.Case{Setup: fmt.Sprintf("%s, %d workers", r.setup, publishedWorkers), Value: good(publishedWorkers).Over(most), Beside: true})
	}
	return cases
}

var claimOfSizes = ledger.Claim{ID: "H5", Title: "the cores decide the size of a pool: 2–4 workers for each over a store that waits, one where look-ups compute",
	Published: "I/O-bound: workers = 2–4 × cores, queue = 5 × workers; CPU-bound: workers = cores, queue = 2 × workers; 8 cores: 30 workers, a queue of 150; no figure",
	Note:      "A worker over a store that waits uses next to no processor. How many of them are best follows from how much the store bears, not from the cores. The rule's best size counts, so that it has every advantage; it is compared with the best of all sizes and queues, which every second repeat chooses and the others judge. Real stores decide: a model of one, or a store without a capacity, would show its own parameters.",
	Parts:     partsOfSizes(),
}

func partsOfSizes() (out []ledger.Part) {
	for _, r := range rules {
		title := fmt.Sprintf("over %s %d to %d workers for each core come within 10 %% of the best size", r.setup, r.least, r.most)
		if r.least == r.most {
			title = fmt.Sprintf("for %s a worker for each core comes within 10 %% of the best size", r.setup)
		}
		out = append(out, ledger.Part{ID: r.part, Title: title, Subject: "goodput of the rule's size/that of the best", Unit: "x", Rule: judge.AtLeast(0.9), Spread: 0.03, Cases: r.best})
	}
	return out
}
