package overload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/postgres"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/load/loadgen"
)

// patience is how long after its deadline a client drops its connection.
const patience = 250 * time.Millisecond

// nearly is the part of the capacity that a right size reaches.
const nearly = .95

// Events is how many rows the table of a scene in PostgreSQL has.
const Events = 100_000

// usual is what a request costs the model of a database.
var usual = service.Work{Slots: 10, Min: 20 * time.Millisecond, Max: 60 * time.Millisecond}

// multiple is the name of a load that is so many times what the service can do, such as "1.5x".
func multiple(times float64) string { return strconv.FormatFloat(times, 'g', -1, 64) + "x" }

// size is what a service can do without a contestant.
type size struct {
	capacity float64 // good answers a second
	slots    int     // the least concurrency that reaches nearly the capacity
	rows     int     // that a query sums up in a millisecond
}

// session makes the runs.
type session struct {
	Config
	scenes []*scene
	sizes  map[string]size // by set-up; prepare fills it
	server atomic.Int64    // process id of PostgreSQL
}

// trial is one run of a scene.
type trial struct {
	*session
	scene *scene
	job   Job
	size  size

	srv     *service.Service
	url     string
	https   []*loadgen.HTTP
	foreign atomic.Int64 // answers about another patient
	crowd   *crowd       // nil: the scene has a mix of kinds

	from, to time.Time // what is measured
	run      results.Run
	result   *loadgen.Result
	served   service.Served
	noted    map[string]float64 // figures of what goes on beside the load
}

// prepare measures what the services can do without a contestant.
func (m *session) prepare(ctx context.Context) error {
	for _, s := range m.scenes {
		if _, known := m.sizes[s.setup]; known || s.clients == nil {
			continue
		}
		err := m.with(ctx, s, None, 1, func(ctx context.Context, t *trial) (err error) {
			if s.calibrate != nil {
				if t.size.rows, err = s.calibrate(t); err != nil {
					return err
				}
			}
			best, slots, err := t.saturate(ctx)
			if err != nil {
				return err
			}
			m.sizes[s.setup] = size{best.Goodput(), slots, t.size.rows}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", s.setup, err)
		}
	}
	return nil
}

// saturate measures the capacity by clients that ask back to back, and ends the service.
func (t *trial) saturate(ctx context.Context) (best *loadgen.Result, slots int, err error) {
	target, err := t.inTurn()
	if err != nil {
		return nil, 0, err
	}
	began := time.Now()
	best, slots, err = most(t.scene.clients, func(n int) (*loadgen.Result, error) {
		return loadgen.Run(t.srv.Loading, loadgen.Config{Target: target, Interval: service.Step, Closed: &loadgen.Closed{Clients: n, Duration: lasts(t.Pace, t.scene.time) / 3}})
	})
	if err != nil {
		return nil, 0, err
	}
	_, err = t.srv.End(ctx, &t.run, began)
	return best, slots, err
}

// most is the best of the results of several numbers of clients, which ask back to back, and the
// first of the numbers that is nearly as good.
func most(clients []int, load func(clients int) (*loadgen.Result, error)) (best *loadgen.Result, enough int, err error) {
	good := make([]float64, len(clients))
	for i, n := range clients {
		res, err := load(n)
		if err != nil {
			return nil, 0, err
		}
		if good[i] = res.Goodput(); best == nil || good[i] > best.Goodput() {
			best = res
		}
	}
	if best.Goodput() <= 0 {
		return nil, 0, errors.New("nothing was answered in time while the capacity was measured")
	}
	return best, clients[slices.IndexFunc(good, func(x float64) bool { return x >= nearly*best.Goodput() })], nil
}

// with has use ask a service, over a database of its own if the scene needs one, and ends both.
func (m *session) with(ctx context.Context, s *scene, name string, seed uint64, use func(context.Context, *trial) error) (err error) {
	ctx, end := context.WithCancel(ctx)
	defer end() // of the service, too, if use fails
	of, measured := m.sizes[s.setup]
	if !measured {
		of = size{capacity: usual.Capacity(), slots: usual.Slots}
	}
	of.slots = cmp.Or(s.slots, of.slots)
	t := &trial{session: m, scene: s, size: of, noted: map[string]float64{}, job: Job{
		Scene: s.name, Backend: s.backend, Does: s.does, Contestant: name, Slots: of.slots, Wait: s.wait, Front: s.front, Work: usual, Seed: seed, Pace: m.Pace,
	}}
	if s.database {
		database, err := m.open(ctx, postgres.Population{Events: Events})
		if err != nil {
			return err
		}
		defer func() { err = cmp.Or(err, database.Close()) }()
		t.job.URL = database.URL
	}
	spec := m.Spec(s.program, RoleService, t.job)
	if s.spec != nil {
		s.spec(&spec)
	}
	if t.srv, err = service.Start(ctx, spec); err != nil {
		return err
	}
	defer func() {
		for _, h := range t.https {
			h.Close()
		}
	}()
	t.url = "http://" + t.srv.Address
	return use(ctx, t)
}

// open makes a database on the server, whose computing disturbs no run.
func (m *session) open(ctx context.Context, with postgres.Population) (*postgres.Database, error) {
	d, err := m.Postgres.Open(ctx, with)
	if err == nil {
		m.server.Store(int64(d.Server))
	}
	return d, err
}

// run measures one contestant: all of its cells. The run is made again if the clients sent late.
func (m *session) run(ctx context.Context, s *scene, name string, seed uint64) (runs []results.Run, err error) {
	measure := func() (results.Run, error) {
		err := m.with(ctx, s, name, seed, func(ctx context.Context, t *trial) (err error) {
			runs, err = t.measure(ctx)
			return err
		})
		if err != nil {
			return results.Run{}, err
		}
		return runs[0], nil
	}
	if s.busy != nil && s.busy(name) {
		_, err = measure()
	} else {
		_, err = m.InTime(measure)
	}
	return runs, err
}

// measure sends the load of the scene.
func (t *trial) measure(ctx context.Context) ([]results.Run, error) {
	load := service.Load{Seed: t.job.Seed, Fills: t.scene.tail > 0}
	load.Stretches, load.Measured = t.scene.stretches(t.Pace, t.size.capacity)
	targets, err := t.targets(load)
	if err != nil {
		return nil, err
	}
	stop := func() error { return nil }
	t.from, t.to = load.Window()
	if t.scene.during != nil {
		if stop, err = t.scene.during(ctx, t); err != nil {
			return nil, err
		}
		t.from, t.to = load.Window()
	}
	t.run, t.result, t.served, err = t.srv.Measure(ctx, load, targets)
	if err = cmp.Or(err, stop()); err != nil {
		return nil, err
	}
	if n := t.foreign.Load(); n > 0 {
		return nil, fmt.Errorf("%d answers were about another patient than the one asked for", n)
	}
	runs := []results.Run{t.run}
	if t.scene.each != nil {
		runs = t.scene.each(t)
	}
	if t.scene.figures != nil {
		runs[0].Extra = t.scene.figures(t)
		maps.DeleteFunc(runs[0].Extra, func(_ string, x float64) bool { return math.IsNaN(x) })
	}
	for i := range runs {
		runs[i].Killed = t.run.Killed
		runs[i].Params = map[string]any{"pace": t.Pace, "times": t.scene.times, "capacity": t.size.capacity, "right_size": t.job.Slots, "rows_per_ms": t.size.rows}
	}
	return runs, nil
}

// ofKind is the run of one kind of the requests.
func (t *trial) ofKind(i int) results.Run {
	class := loadgen.Result{Elapsed: time.Duration(t.run.Elapsed * float64(time.Second)), Outcomes: t.result.Classes[i].Outcomes}
	for _, o := range class.Outcomes {
		class.Offered += o.Count
	}
	return experiment.FromLoad(&class)
}
