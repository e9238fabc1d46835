package patterns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/postgres"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
)

// The same scenarios on a real database, as set-ups.
const (
	OnPostgres = "PostgreSQL" // in words, and how the set-ups begin

	RealCrowd     = OnPostgres + ", " + Crowd
	RealStall     = OnPostgres + ", " + Stall
	RealNeighbour = OnPostgres + ", " + Neighbour
)

// The contestants there: the service's own API, which bounds nothing, or as many as the
// published pool has workers, or what it finds out.
const (
	Unprotected = "unprotected"           // a goroutine for every request, and as many connections as there are queries
	Unqueued    = "unprotected, queueing" // a goroutine for every request, which waits for one of the connections
	Pooled      = "pooled"                // a pool of the published size
	Told        = "pooled, told"          // a pool that was told how many connections there are
	Adaptive    = "adaptive"              // no number given
)

const (
	someConnections = postgres.Connections - 5  // that a service may open: some stay for those who run it
	shared          = postgres.Connections - 25 // that it may open where its neighbour has 20
	unbounded       = 100_000
	scarcePatients  = 1_000
)

// RoleScarce is the service.
const RoleScarce = "patterns-scarce"

// Scarce is its input.
type Scarce struct {
	URL                    string        // of the database
	Runs                   string        // the service's pattern
	Connections            int           // of its pool
	Renewed                time.Duration // after which it closes a connection and opens another; 0: not within the run
	Workers, QueueSize     int
	MinLatency, MaxLatency time.Duration // a query takes
}

// Connected is what the service reports at its end.
type Connected struct {
	service.Served
	Refused int64 // connections, by the database
	Without int64 // queries without a connection within TooLong
}

// checkScenarios says what is wrong with what was asked of the real database.
func (c Config) checkScenarios() error {
	var names []string
	for _, s := range scenarios {
		if s.name != "" {
			names = append(names, s.name)
		}
	}
	if len(c.Scenario) > 0 && c.Postgres == "" {
		return errors.New("scenario is for a real database: name its server with --postgres, or set " + postgres.Env + " (scripts/ensure-postgres.sh starts one)")
	}
	return cmp.Or(c.Postgres.Check(), experiment.Known("scenario", c.Scenario, names))
}

// addReal adds what is played on the real database, if there is one.
func (c Config) addReal(p *experiment.Plan) {
	if c.Postgres != "" {
		c.Postgres.Use(p, postgres.ServerConnections)
		p.Cells = c.scenes(true)
	}
}

// errSilent is of a service that did not even answer when all was well.
var errSilent = errors.New("the service answered nothing before anything happened")

// running is a service on the stage.
type running struct {
	*service.Service
	*clients

	Connected
}

// onPostgres plays the scene over a database that is dropped after it.
func (s scene) onPostgres(ctx context.Context) (run results.Run, err error) {
	ctx, end := context.WithCancel(ctx)
	defer end() // of the services, too, if the run fails
	err = s.Postgres.With(ctx, postgres.Population{Patients: scarcePatients}, func(d *postgres.Database) error {
		run, err = find(s.Scenario).play(ctx, &stage{s, d})
		return err
	})
	if err != nil {
		return run, err
	}
	run.Params = s.params()
	return run, ctx.Err()
}

// start starts a service with so many connections for its pool, and its clients.
func (s *stage) start(ctx context.Context, contestant string, connections int, renewed time.Duration) (*running, error) {
	j := Scarce{URL: s.database.URL, Connections: connections, Renewed: renewed, MinLatency: s.MinLatency, MaxLatency: s.MaxLatency}
	workers := s.workers()
	switch contestant {
	case Unprotected:
		j.Runs, j.Connections = Naive, unbounded
	case Unqueued:
		j.Runs = Naive
	case Pooled:
		j.Runs, j.Workers, j.QueueSize, j.Connections = WorkerPool, workers, s.QueueSize, workers
	case Told:
		j.Runs, j.Workers, j.QueueSize = WorkerPool, connections, 5*connections
	default:
		j.Runs = Adaptive
	}
	srv, err := service.Start(ctx, s.patient(RoleScarce, j))
	if err != nil {
		return nil, err
	}
	r := &running{Service: srv}
	r.clients, err = newClients(srv.Address)
	return r, err
}

// stop ends the service and adds what it says to the run.
func (r *running) stop(ctx context.Context, run *results.Run) error {
	r.clients.close()
	if n := r.foreign.Load(); n > 0 {
		return fmt.Errorf("%d answers were about another patient than the one asked for", n)
	}
	exit, err := r.Stop(ctx, &r.Connected)
	if err != nil {
		return err
	}
	run.Killed, run.Process = exit.Killed, experiment.Process(r.Usage)
	run.Process.PeakRSS = max(run.Process.PeakRSS, exit.PeakRSS)
	if exit.Killed == "" {
		run.Extra[withoutConnection.Key] = float64(r.Without)
		run.Extra[refusedConnections.Key] += float64(r.Refused) // of two services together
	}
	return nil
}

// addSamples adds what a service saw of itself to a time line that began at that moment.
func addSamples(line []results.Point, samples []service.Sample, began time.Time) {
	for i := range line {
		p := &line[i]
		for len(samples) > 1 && samples[0].At.Sub(began).Seconds() < p.At {
			samples = samples[1:]
		}
		if len(samples) > 0 {
			p.InFlight, p.Limit, p.Queued, p.Goroutines = samples[0].InFlight, samples[0].Limit, samples[0].Queued, samples[0].Goroutines
		}
	}
}
