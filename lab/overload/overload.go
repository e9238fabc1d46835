// Package overload is the experiment that compares ways of bounding concurrency when
// a service is offered more than it can do: the patient API over HTTP and SQLite, in
// front of a database with a knee, from half its capacity to ten times it.
package overload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/loadgen"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, Config.plan, nil)

// The service is in a program of its own, for it imports SQLite.
const (
	program    = "patient"
	RoleServer = "overload-server"
)

const help = `The patient API over HTTP and SQLite, in a process of its own, is offered 0.5 to 10 times what it can do, by clients that do not wait for each other (open loop, Poisson). Each waits a second for its answer and says so in a header; every fifth request is critical and says so too. The bottleneck is a database with a knee: ten lookups at a time run at full speed, some 250 a second; beyond that they share it, and the sharing costs, so that four times too many halve the total.

The contestants bound the lookup by: nothing (none); golang.org/x/sync/semaphore of exactly the right size, waiting as long as the deadline allows (semaphore) or refusing at once (semaphore-try), and four times too large (semaphore-4x); our worker pool of the right size (workerpool); failsafe-go's adaptive limiter with priorities (failsafe); our limiter.New(limiter.Config{}), told nothing (spillway).`

// Config is what a user may set.
type Config struct {
	Contestant []string      `placeholder:"NAME" help:"Only these: none, semaphore, semaphore-try, semaphore-4x, workerpool, failsafe, spillway. Goals that need another one stay open."`
	Load       []float64     `group:"Size" default:"0.5,0.9,1.5,2,5,10" quick:"0.9,2,5" above:"0" most:"20" help:"The loads, as multiples of the measured capacity."`
	WarmUp     time.Duration `group:"Size" default:"3s" quick:"2s" whole:"2s" above:"0s" help:"How long the same load comes before each measurement."`
	Time       time.Duration `group:"Size" default:"5s" quick:"2s" whole:"3s" above:"0s" help:"How long a measurement is."`
	Deadline   time.Duration `group:"Size" default:"1s" least:"10ms" help:"How long a client waits for its answer; it tells the service so."`
	Patients   int           `group:"Size" default:"10000" least:"1" help:"How many patients are in the SQLite file, which is made on first use and kept in your cache folder."`
	service.Flags
}

func (c Config) plan() (experiment.Plan, error) {
	if err := cmp.Or(c.Work.Check(), experiment.Known("contestant", c.Contestant, Names())); err != nil {
		return experiment.Plan{}, err
	}
	patterns := c.Contestant
	if len(patterns) == 0 {
		patterns = Names()
	}
	if slices.Contains(patterns, Spillway) {
		patterns = append(slices.Clone(patterns), Spillway) // its twin
	}
	m := &measurement{Config: c}
	p := experiment.Plan{Programs: []contestant.Spec{{Program: program, Role: RoleServer}}, Prepare: m.prepare}
	for _, x := range c.Load {
		batches := batchesOf(len(patterns), x)
		for i, name := range patterns {
			p.Cells = append(p.Cells, experiment.Cell{
				Setup: setup, Load: service.Multiple(x), Pattern: name, Twin: slices.Contains(patterns[:i], name),
				Beside: fmt.Sprintf("%s, %d of %d", service.Multiple(x), 1+i%batches, batches), Expect: c.WarmUp + c.Time + c.Deadline + service.Patience,
				Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
					return c.InTime(func() (results.Run, error) { return m.run(ctx, name, x, t.Seed) })
				},
			})
		}
	}
	return p, nil
}

// batchesOf is in how many batches so many contestants run, those of one at the same time,
// each in a process of its own. Nearly all of a lookup is waiting: what is offered nine
// times the capacity takes, with its clients, about one processor, and what is offered the
// capacity a fifth of one, because answers cost more than refusals.
func batchesOf(contestants int, x float64) int {
	together := max(int(10*float64(runtime.GOMAXPROCS(0))/(x+1)), 1)
	return (contestants + together - 1) / together
}

// measurement makes the runs.
type measurement struct {
	Config
	capacity float64 // good answers a second
}

func (m *measurement) start(ctx context.Context, name string, seed uint64) (*service.Service, *clients, error) {
	job := service.Job{Pattern: name, Work: m.Work, Seed: seed, Patients: m.Patients}
	srv, err := service.Start(ctx, m.Spec(program, RoleServer, job))
	if err != nil {
		return nil, nil, err
	}
	c, err := newClients(srv.Address, m.Patients, m.Deadline)
	return srv, c, err
}

// prepare makes the SQLite file, or finds that of an earlier session, and measures the
// capacity of the service: twice, for a disturbance makes the figure smaller, never
// larger.
func (m *measurement) prepare(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end() // of the service, too, if the run fails
	srv, c, err := m.start(ctx, None, 1)
	if err != nil {
		return err
	}
	defer c.close()
	for range 2 {
		res, err := service.Saturate(srv.Loading, c.ordinary, m.Slots, m.Time, m.Deadline+service.Patience)
		if err != nil {
			return err
		}
		m.capacity = max(m.capacity, res.Goodput())
	}
	if _, err := srv.End(ctx, new(results.Run), time.Now()); err != nil {
		return err
	}
	if m.capacity <= 0 {
		return fmt.Errorf("the service answered nothing while its capacity was measured: is the deadline of %v long enough?", m.Deadline)
	}
	return nil
}

// run measures one contestant under one load.
func (m *measurement) run(ctx context.Context, name string, x float64, seed uint64) (results.Run, error) {
	ctx, end := context.WithCancel(ctx)
	defer end() // of the service, too, if the run fails
	srv, c, err := m.start(ctx, name, seed)
	if err != nil {
		return results.Run{}, err
	}
	defer c.close()
	rate := x * m.capacity
	run, _, err := srv.Measure(ctx, service.Load{
		Stretches: []service.Stretch{{Rate: rate, For: m.WarmUp}, {Rate: rate, For: m.Time}}, Measured: 1, Timeout: m.Deadline + service.Patience, Seed: seed,
	}, c.do)
	if err != nil {
		return results.Run{}, err
	}
	run.Params = map[string]any{"load": x}
	run.Extra = map[string]float64{
		"capacity": m.capacity, "critical_offered": float64(c.criticalSent.Load()) / run.Elapsed, "critical_ok": float64(c.criticalOK.Load()) / run.Elapsed,
	}
	if n := c.foreign.Load(); n > 0 {
		err = fmt.Errorf("%d answers were about another patient than the one asked for", n)
	}
	return run, err
}

const criticalEvery = 5 // requests, one is critical

// clients send requests to the service like its real clients: with a deadline and a
// priority in the headers.
type clients struct {
	ordinary, critical *loadgen.HTTP
	deadline           time.Duration

	criticalSent, criticalOK atomic.Uint64 // of those that count
	foreign                  atomic.Int64
}

func newClients(address string, patients int, deadline time.Duration) (*clients, error) {
	c := &clients{deadline: deadline}
	id := func(n uint64) string { return fmt.Sprintf("P%06d", 1+n*7919%uint64(patients)) }
	header := service.Deadline(deadline)
	var err1, err2 error
	c.ordinary, err1 = service.Patients("http://"+address, header, id, &c.foreign)
	header.Set(admissionhttp.HeaderPriority, "critical")
	c.critical, err2 = service.Patients("http://"+address, header, id, &c.foreign)
	return c, errors.Join(err1, err2)
}

// do sends request n.
func (c *clients) do(ctx context.Context, n uint64, counts bool) loadgen.Outcome {
	target, important := c.ordinary, n%criticalEvery == 0
	if important {
		target = c.critical
	}
	outcome := service.InTime(target, c.deadline).Do(ctx, n)
	if important && counts {
		c.criticalSent.Add(1)
		if outcome == loadgen.OK {
			c.criticalOK.Add(1)
		}
	}
	return outcome
}

func (c *clients) close() {
	c.ordinary.Close()
	c.critical.Close()
}
