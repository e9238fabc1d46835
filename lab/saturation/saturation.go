// Package saturation is the experiment about overload in surroundings of real services: the
// processors of the service itself, the garbage collector, and PostgreSQL.
package saturation

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/postgres"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/loadgen"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, Config.plan, nil)

const help = `A small HTTP service is offered 1.5 and 3 times what it can do, by clients that do not wait for each other (open loop, Poisson) and leave after a second. Five resources run short in turn:

processor: each request computes for 4 ms; the service has one processor (GOMAXPROCS=1).
around: each request computes for 1 ms around a call of 20 ms; one processor.
collector: each request makes 40,000 small allocations; one processor.
sort: each request has PostgreSQL sort rows.
hotrows: each request updates one of three rows of PostgreSQL and holds it for 3 ms.

The contestants are in front of the handler: nothing (none); golang.org/x/sync/semaphore of the right size, which is measured first, refusing at once (semaphore-try); failsafe-go's adaptive limiter (failsafe); our limiter.New(limiter.Config{}), told nothing (spillway).

Each contestant runs alone, in a process of its own. PostgreSQL needs --postgres.`

// RoleServer is the role of the service, which takes a Job.
const (
	RoleServer = "saturation-server"
	program    = "patient"
)

// Events is the number of rows of the table in PostgreSQL.
const Events = 100_000

// The contestants.
const (
	None         = "none"
	SemaphoreTry = "semaphore-try"
	Failsafe     = "failsafe"
	Spillway     = "spillway"
)

var names = []string{None, SemaphoreTry, Failsafe, Spillway}

// The resources.
const (
	Processor = "processor"
	Around    = "around"
	Collector = "collector"
	Sort      = "sort"
	HotRows   = "hotrows"
)

// resource is what runs short.
type resource struct {
	id, setup  string
	processors int // of the service; 0: all
	database   bool
}

var resources = []resource{
	{Processor, "4 ms of processor, one processor", 1, false},
	{Around, "1 ms of processor around a call of 20 ms, one processor", 1, false},
	{Collector, "40,000 small allocations, one processor", 1, false},
	{Sort, "PostgreSQL, a sort", 0, true},
	{HotRows, "PostgreSQL, three hot rows", 0, true},
}

var loads = []float64{1.5, 3}

// Job is the input of a service.
type Job struct {
	Resource   string
	URL        string // of PostgreSQL's database
	Contestant string
	Slots      int // of the semaphore
	Processors int // GOMAXPROCS; 0: as it is
}

// Config is what a user may set.
type Config struct {
	Contestant []string        `placeholder:"NAME" help:"Only these: none, semaphore-try, failsafe, spillway. Goals that need another one stay open."`
	Resource   []string        `placeholder:"NAME" help:"Only these: processor, around, collector, sort, hotrows. Goals about another one stay open."`
	WarmUp     time.Duration   `group:"Size" default:"3s" quick:"2s" above:"0s" help:"How long the same load comes before each measurement."`
	Time       time.Duration   `group:"Size" default:"4s" quick:"2s" above:"0s" help:"How long a measurement is."`
	Deadline   time.Duration   `group:"Size" default:"1s" least:"10ms" help:"How long a client waits for its answer; it tells the service so."`
	MostLag    time.Duration   `default:"50ms" help:"A run whose clients sent later than that (p99) is made again, twice at most; if they still do, it does not count."`
	MemoryCap  int             `default:"2048" least:"0" placeholder:"MIB" help:"A contestant that needs more memory than that is killed; 0 sets no limit."`
	Postgres   postgres.Server `env:"SPILLWAY_POSTGRES" placeholder:"URL" help:"A PostgreSQL, as its superuser: postgres://user@host:port/postgres, with a password only in the environment. The experiment makes a database of its own for each run and drops it."`
}

func (c Config) flags() service.Flags {
	return service.Flags{MostLag: c.MostLag, MemoryCap: c.MemoryCap}
}

// resources are those that are wanted and there.
func (c Config) resources() []resource {
	return slices.DeleteFunc(slices.Clone(resources), func(r resource) bool {
		return !experiment.Wanted(c.Resource, r.id) || r.database && c.Postgres == ""
	})
}

func (c Config) plan() (experiment.Plan, error) {
	var ids []string
	for _, r := range resources {
		ids = append(ids, r.id)
	}
	if err := cmp.Or(c.Postgres.Check(), experiment.Known("contestant", c.Contestant, names), experiment.Known("resource", c.Resource, ids)); err != nil {
		return experiment.Plan{}, err
	}
	m := &measurement{Config: c, sizes: map[string]size{}}
	p := experiment.Plan{
		Programs: []contestant.Spec{{Program: program, Role: RoleServer}},
		Prepare:  m.prepare,
		Serving:  func() int { return int(m.server.Load()) },
	}
	for _, r := range c.resources() {
		for _, times := range loads {
			for _, name := range names {
				if !experiment.Wanted(c.Contestant, name) {
					continue
				}
				for _, k := range key(r, times, name).AndTwin(name == Spillway) {
					p.Groups = append(p.Groups, experiment.Group{
						Keys: []ledger.Key{k}, Label: strings.Join([]string{k.Setup, k.Load, name}, " · "),
						Expect: c.WarmUp + c.Time + c.Deadline,
						Run: func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
							run, err := m.measure(ctx, r, times, name, t.Seed)
							return []results.Run{run}, err
						},
					})
				}
			}
		}
	}
	if len(p.Groups) == 0 {
		return p, postgres.ErrNone
	}
	return p, nil
}

// key is the cell of a contestant.
func key(r resource, times float64, contestant string) ledger.Key {
	return ledger.Key{Setup: r.setup, Load: service.Multiple(times), Pattern: contestant}
}

// size is what a service can do.
type size struct {
	capacity float64 // good answers a second
	slots    int     // the least concurrency that reaches nearly the capacity
}

// measurement makes the runs.
type measurement struct {
	Config
	sizes  map[string]size // by resource; prepare fills it
	server atomic.Int64    // process id of PostgreSQL
}

// nearly is the part of the capacity that a right size reaches.
const nearly = 0.95

// clients are the numbers of those that ask back to back while the capacity is measured.
var clients = []int{1, 2, 4, 8, 16, 32}

// prepare measures what the service can do without a contestant.
func (m *measurement) prepare(ctx context.Context) error {
	for _, r := range m.resources() {
		err := m.with(ctx, Job{Resource: r.id, Contestant: None, Processors: r.processors}, func(srv *service.Service, target *loadgen.HTTP) error {
			most, slots, err := service.Capacity(clients, nearly, func(n int) (*loadgen.Result, error) {
				return loadgen.Run(srv.Loading, loadgen.Config{Target: target, Timeout: m.Deadline + service.Patience,
					Closed: &loadgen.Closed{Clients: n, Duration: m.Time / 4}})
			})
			if err != nil {
				return err
			}
			m.sizes[r.id] = size{most, slots}
			_, err = srv.End(ctx, new(results.Run), time.Now())
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", r.setup, err)
		}
	}
	return nil
}

// with has use ask a service, over a database of its own if the service needs one, and ends both.
func (m *measurement) with(ctx context.Context, job Job, use func(srv *service.Service, target *loadgen.HTTP) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end() // of the service, too, if use fails
	if job.URL == "" && (job.Resource == Sort || job.Resource == HotRows) {
		return m.Postgres.With(ctx, postgres.Population{Events: Events}, func(d *postgres.Database) error {
			job.URL = d.URL
			m.server.Store(int64(d.Server))
			return m.with(ctx, job, use)
		})
	}
	srv, err := service.Start(ctx, m.flags().Spec(program, RoleServer, job))
	if err != nil {
		return err
	}
	target, err := loadgen.NewHTTP(loadgen.HTTPConfig{
		URL:     "http://" + srv.Address + "/",
		Header:  service.Deadline(m.Deadline),
		Timeout: m.Deadline + service.Patience,
	})
	if err != nil {
		return err
	}
	defer target.Close()
	return use(srv, target)
}

// measure is run, made again if the clients sent late.
func (m *measurement) measure(ctx context.Context, r resource, times float64, name string, seed uint64) (results.Run, error) {
	return m.flags().InTime(func() (run results.Run, err error) {
		of := m.sizes[r.id]
		err = m.with(ctx, Job{Resource: r.id, Contestant: name, Slots: of.slots, Processors: r.processors}, func(srv *service.Service, target *loadgen.HTTP) error {
			rate, inTime := times*of.capacity, service.InTime(target, m.Deadline)
			run, _, err = srv.Measure(ctx, service.Load{
				Stretches: []service.Stretch{{Rate: rate, For: m.WarmUp}, {Rate: rate, For: m.Time}}, Measured: 1, Timeout: m.Deadline + service.Patience, Seed: seed,
			}, func(ctx context.Context, n uint64, _ bool) loadgen.Outcome { return inTime.Do(ctx, n) })
			return err
		})
		run.Params = map[string]any{"times": times, "right_size": of.slots}
		run.Extra = map[string]float64{capacity.Key: of.capacity}
		if h := run.Of("ok").Latency; h.Count() > 0 {
			run.Extra[slowest.Key] = math.Round(float64(h.Quantile(.99)) / 1e6)
		}
		return run, err
	})
}
