// Package overload is the experiment that compares ways of bounding concurrency when
// a service is offered more than it can do: the patient API over HTTP and SQLite, in
// front of a database with a knee, from half its capacity to ten times it.
package overload

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
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
	Contestant []string      `placeholder:"NAME" help:"Only these: none, semaphore, semaphore-try, semaphore-4x, workerpool, failsafe, spillway. Spillway is compared with those that were run."`
	Load       []float64     `group:"Size" default:"0.5,0.9,1.5,2,5,10" quick:"0.9,2,10" help:"The loads, as multiples of the measured capacity."`
	WarmUp     time.Duration `group:"Size" default:"3s" quick:"2s" help:"How long the same load comes before each measurement."`
	Time       time.Duration `group:"Size" default:"5s" quick:"2s" help:"How long a measurement is."`
	Deadline   time.Duration `group:"Size" default:"1s" help:"How long a client waits for its answer; it tells the service so."`
	Patients   int           `group:"Size" default:"10000" help:"How many patients are in the SQLite file, which is made on first use and kept in your cache folder."`
	MemoryCap  int           `default:"2048" placeholder:"MIB" help:"A contestant that needs more memory than that is killed; 0 sets no limit."`
	service.Work
}

func (c Config) check() error {
	if len(c.Load) == 0 || slices.ContainsFunc(c.Load, func(x float64) bool { return !(x > 0 && x <= 20) }) {
		return fmt.Errorf("load is %v: want multiples of the capacity, above 0 and at most 20, such as 1.5", c.Load)
	}
	if c.WarmUp < 0 || c.Time <= 0 || c.Deadline < 10*time.Millisecond || c.Patients < 1 || c.MemoryCap < 0 {
		return fmt.Errorf("warm-up is %v, time %v, deadline %v, patients %d and memory-cap %d: want at least 0s, more than 0s, at least 10ms, at least 1, and at least 0",
			c.WarmUp, c.Time, c.Deadline, c.Patients, c.MemoryCap)
	}
	if err := c.Work.Check(); err != nil {
		return err
	}
	return experiment.Known("contestant", c.Contestant, Names())
}

func (c Config) plan() (experiment.Plan, error) {
	if err := c.check(); err != nil {
		return experiment.Plan{}, err
	}
	if len(c.Contestant) == 0 {
		c.Contestant = Names()
	}
	m := &measurement{Config: c}
	p := experiment.Plan{Programs: []contestant.Spec{{Program: program, Role: RoleServer}}, Prepare: m.prepare}
	for _, x := range c.Load {
		all := make([]ledger.Key, 0, len(c.Contestant)+1)
		for _, name := range c.Contestant {
			all = append(all, key(loadName(x), name))
		}
		if slices.Contains(c.Contestant, Spillway) {
			twin := key(loadName(x), Spillway)
			twin.Twin = true
			all = append(all, twin)
		}
		batches := batchesOf(len(all), x)
		for i, k := range all {
			p.Cells = append(p.Cells, experiment.Cell{
				Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Beside: fmt.Sprintf("%s, %d of %d", k.Load, 1+i%batches, batches), Expect: c.WarmUp + c.Time + c.Deadline + patience,
				Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
					return service.InTime(c.Deadline/20, func() (results.Run, error) { return m.run(ctx, k.Pattern, x, t.Seed) })
				},
			})
		}
	}
	return p, nil
}

// loadName is a multiple of the capacity, such as "1.5x".
func loadName(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) + "x" }

// batchesOf is in how many batches so many contestants run, those of one at the same time,
// each in a process of its own. Nearly all of a lookup is waiting: ten times the capacity,
// with the clients, takes half of a processor.
func batchesOf(contestants int, x float64) int {
	together := max(int(10*float64(runtime.GOMAXPROCS(0))/x), 1)
	return (contestants + together - 1) / together
}

// measurement makes the runs.
type measurement struct {
	Config
	capacity float64 // good answers a second
}

func (m *measurement) start(ctx context.Context, name string, seed uint64) (context.Context, *service.Service, *clients, error) {
	job := service.Job{Pattern: name, Work: m.Work, Seed: seed, Patients: m.Patients}
	loading, srv, err := service.Start(ctx, contestant.Spec{Program: program, Role: RoleServer, Input: job, MemoryCap: uint64(m.MemoryCap) << 20})
	if err != nil {
		return nil, nil, nil, err
	}
	c, err := newClients(srv.Address, m.Patients, m.Deadline)
	return loading, srv, c, err
}

// prepare makes the SQLite file, or finds that of an earlier session, and measures the
// capacity of the service: twice, for a disturbance makes the figure smaller, never
// larger.
func (m *measurement) prepare(ctx context.Context) error {
	loading, srv, c, err := m.start(ctx, None, 1)
	if err != nil {
		return err
	}
	for range 2 {
		res, err := service.Saturate(loading, c.ordinary, m.Slots, m.Time, m.Deadline+patience)
		if err != nil {
			return err
		}
		m.capacity = max(m.capacity, res.Goodput())
	}
	c.close()
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
	loading, srv, c, err := m.start(ctx, name, seed)
	if err != nil {
		return results.Run{}, err
	}
	rate := x * m.capacity
	load := service.Load{Stretches: []service.Stretch{{Rate: rate, For: m.WarmUp}, {Rate: rate, For: m.Time}}, Measured: 1, Timeout: m.Deadline + patience, Seed: seed}
	began, _ := load.Window()
	res, err := load.Send(loading, c.do)
	c.close()
	if err != nil {
		return results.Run{}, err
	}
	run := experiment.FromLoad(res)
	run.Elapsed = m.Time.Seconds() // the requests are those intended in this time
	served, err := srv.End(ctx, &run, began)
	run.Params = map[string]any{"load": x, "state": served.Says, "generator": res.Why}
	run.Extra = map[string]float64{
		"capacity": m.capacity, "critical_offered": float64(c.criticalSent.Load()) / run.Elapsed, "critical_ok": float64(c.criticalOK.Load()) / run.Elapsed,
	}
	if n := c.foreign.Load(); n > 0 {
		err = fmt.Errorf("%d answers were about another patient than the one asked for", n)
	}
	return run, err
}
