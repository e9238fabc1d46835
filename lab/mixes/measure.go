package mixes

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/postgres"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/loadgen"
)

// same is by how much two sizes may differ and count as equally good.
const same = .05

// clients are the numbers of those that ask back to back, to find out what a database can do.
var clients = []int{1, 2, 4, 8, 16}

// gauge is what a database can do.
type gauge struct {
	rows     int     // that it sums up in a millisecond
	capacity float64 // requests of the mix a second
	slots    int     // the fewest at a time with which it does that
}

func (c Config) flags() service.Flags {
	return service.Flags{MostLag: c.MostLag, MemoryCap: c.MemoryCap}
}

// with has use talk to a contestant over a database of its own, and ends both.
func (m *measurement) with(ctx context.Context, job Job, use func(ctx context.Context, srv *service.Service) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end() // of the service, too, if use fails
	if job.URL == "" && job.Engine == PostgreSQL {
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
	return use(ctx, srv)
}

// prepare finds out how many rows make the lengths, how much of each mix a database can do,
// and how many queries at a time that takes.
func (m *measurement) prepare(ctx context.Context) error {
	for _, engine := range m.engines() {
		err := m.with(ctx, Job{Engine: engine, Contestant: None}, func(ctx context.Context, srv *service.Service) error {
			rows, err := rowsOf(srv)
			if err != nil {
				return err
			}
			for _, x := range m.mixes() {
				g, err := m.saturate(srv, x, rows)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", engine, x.name, err)
				}
				m.gauges[x.key(engine, 1, "").Setup] = g
			}
			_, err = srv.End(ctx, new(results.Run), time.Now())
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rowsOf is how many rows the database sums up in a millisecond, alone: by the middle one of
// several queries.
func rowsOf(srv *service.Service) (int, error) {
	const rows, passes, times = 2_000, 20, 9
	target, err := sums(srv.Address, rows, passes, time.Minute)
	if err != nil {
		return 0, err
	}
	defer target.Close()
	var took []time.Duration
	for range times {
		began := time.Now()
		if got := target.Do(srv.Loading, 0); got != loadgen.OK {
			return 0, fmt.Errorf("the first query ended as %v: %w", got, target.FirstError())
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return min(max(int(rows*passes*float64(time.Millisecond)/float64(took[times/2])), 1), Events/2), nil
}

// sums asks for a sum of so many rows, so many times over.
func sums(address string, rows, passes int, deadline time.Duration) (*loadgen.HTTP, error) {
	return loadgen.NewHTTP(loadgen.HTTPConfig{
		URL:     fmt.Sprintf("http://%s/sums?rows=%d&passes=%d", address, rows, passes),
		Header:  service.Deadline(deadline),
		Timeout: deadline + service.Patience,
	})
}

// senders are the parts of a mix. Close them.
type senders struct {
	parts []loadgen.Part
	https []*loadgen.HTTP
}

func (x mix) senders(address string, rows int) (s senders, err error) {
	for _, k := range x.kinds {
		target, err := sums(address, rows, k.length, k.deadline)
		if err != nil {
			return s, err
		}
		s.https = append(s.https, target)
		s.parts = append(s.parts, loadgen.Part{Class: k.name, Weight: float64(k.parts), Target: service.InTime(target, k.deadline)})
	}
	return s, nil
}

func (s senders) close() {
	for _, target := range s.https {
		target.Close()
	}
}

// total is of how many requests the parts are made, and how many milliseconds they take.
func (x mix) total() (requests, work int) {
	for _, k := range x.kinds {
		requests, work = requests+k.parts, work+k.parts*k.length
	}
	return requests, work
}

// inTurn is the mix without chance: of each round every kind has its part.
func (s senders) inTurn() loadgen.Target {
	var round []loadgen.Target
	for _, p := range s.parts {
		for range int(p.Weight) {
			round = append(round, p.Target)
		}
	}
	return loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome {
		const step = 7 // has no divisor in common with 10 and 20, so that the long ones lie apart
		return round[n*step%uint64(len(round))].Do(ctx, n)
	})
}

// saturate asks back to back, by several numbers of clients. Each sends what should take half
// of a measurement.
func (m *measurement) saturate(srv *service.Service, x mix, rows int) (gauge, error) {
	s, err := x.senders(srv.Address, rows)
	defer s.close()
	if err != nil {
		return gauge{}, err
	}
	requests, work := x.total()
	rounds := 1 + int(m.Time.Milliseconds())*runtime.GOMAXPROCS(0)/2/work
	g := gauge{rows: rows}
	g.capacity, g.slots, err = service.Capacity(clients, 1/(1+same), func(n int) (*loadgen.Result, error) {
		return loadgen.Run(srv.Loading, loadgen.Config{Target: s.inTurn(), Closed: &loadgen.Closed{Clients: n, Requests: uint64(rounds * requests)}})
	})
	return g, err
}

// run measures one contestant under one load: a run of all kinds, and one of each.
func (m *measurement) run(ctx context.Context, engine string, x mix, times float64, name string, seed uint64) (runs []results.Run, err error) {
	g := m.gauges[x.key(engine, 1, "").Setup]
	err = m.with(ctx, Job{Engine: engine, Contestant: name, Slots: g.slots}, func(ctx context.Context, srv *service.Service) error {
		s, err := x.senders(srv.Address, g.rows)
		defer s.close()
		if err != nil {
			return err
		}
		load := service.Load{Stretches: m.stretches(x, times, g.capacity), Seed: seed, Fills: true}
		load.Measured = len(load.Stretches) - 2
		var targets []loadgen.Target
		for i := range load.Stretches {
			target, err := loadgen.Mix(seed+uint64(i), s.parts...)
			if err != nil {
				return err
			}
			targets = append(targets, target)
		}
		began, _ := load.Window()
		res, err := load.SendTo(srv.Loading, targets)
		if err != nil {
			return err
		}
		runs = x.runs(res, g, m.Time)
		_, err = srv.End(ctx, &runs[0], began)
		for i := range runs {
			runs[i].Killed = runs[0].Killed
			runs[i].Params = map[string]any{"times": times, "right_size": g.slots, "rows_per_ms": g.rows, "capacity": g.capacity}
		}
		return err
	})
	return runs, err
}

// runs are what a load measured for so long says of all kinds, and of each.
func (x mix) runs(res *loadgen.Result, g gauge, timed time.Duration) []results.Run {
	all := experiment.FromLoad(res)
	all.Elapsed = timed.Seconds()
	out := []results.Run{all}
	offered, done := 0., 0. // milliseconds
	for i, k := range x.kinds {
		class := loadgen.Result{Elapsed: timed, Outcomes: res.Classes[i].Outcomes}
		for _, o := range class.Outcomes {
			class.Offered += o.Count
		}
		out = append(out, experiment.FromLoad(&class))
		offered += float64(class.Offered) * float64(k.length)
		done += float64(class.Outcomes[loadgen.OK].Count) * float64(k.length)
	}
	requests, work := x.total()
	fair := min(g.capacity*float64(work)/float64(requests)*timed.Seconds()/offered, 1)
	for i := range out {
		out[i].Extra = map[string]float64{}
		if out[i].Offered > 0 {
			answered := 100 * out[i].Share("ok")
			out[i].Extra[inTime.Key], out[i].Extra[ofFair.Key] = answered, answered/fair
		}
	}
	delete(out[0].Extra, ofFair.Key)
	out[0].Extra[workDone.Key] = done / timed.Seconds()
	return out
}
