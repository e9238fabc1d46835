package patterns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/postgres"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/load/loadgen"
)

const (
	// TooLong is a wait for a connection that counts as none.
	TooLong = 10 * time.Second

	someConnections = postgres.Connections - 5  // that a service may open: some stay for those who run it
	shared          = postgres.Connections - 25 // that it may open where its neighbour has 20
	unbounded       = 100_000
	scarcePatients  = 1_000
)

// Serving is the input of a service: its own HTTP API over a database.
type Serving struct {
	URL                    string // of PostgreSQL's database; empty: SQLite
	File                   string // of SQLite, with so many patients
	Patients               int
	Pattern                string        // the service's
	Workers, QueueSize     int           // of it
	Connections            int           // to the database, at most
	Renewed                time.Duration // after which it closes a connection and opens another; 0: not within the run
	MinLatency, MaxLatency time.Duration // a query takes
	ErrorRate              float64       // share of the queries of SQLite that fail
	Seed                   uint64
}

// Served is what the service reports at its end.
type Served struct {
	service.Served
	ReuseRate float64 // of its pattern
	Open      int     // connections to SQLite
	Refused   int64   // connections, by PostgreSQL
	Without   int64   // queries without a connection within TooLong
}

// stage is where a scenario is played.
type stage struct {
	Config
	contestant string
	database   *postgres.Database // nil: SQLite
	file       string
}

// start starts a service with so many connections, and its clients, who wait for two seconds.
func (s *stage) start(ctx context.Context, contestant string, connections int, renewed time.Duration) (*running, error) {
	workers := cmp.Or(s.Workers, someWorkers)
	j := Serving{File: s.file, Patients: s.Patients, Connections: connections, Renewed: renewed, MinLatency: s.MinLatency, MaxLatency: s.MaxLatency}
	if s.database != nil {
		j.URL, j.Patients = s.database.URL, scarcePatients
	}
	switch contestant {
	case Unprotected:
		j.Pattern, j.Connections = Naive, unbounded
	case Unqueued:
		j.Pattern = Naive
	case Pooled:
		j.Pattern, j.Workers, j.QueueSize, j.Connections = WorkerPool, workers, s.QueueSize, workers
	case Told:
		j.Pattern, j.Workers, j.QueueSize = WorkerPool, connections, 5*connections
	default:
		j.Pattern = Adaptive
	}
	return s.serve(ctx, j, Job{Config: Config{Patients: j.Patients}}.ID, service.Deadline(inTime))
}

// running is a service with its clients. They look patients up by id, which is critical, search
// for them, which is not, and read the directory, which may be locked.
type running struct {
	*service.Service
	lookup, search, directory *loadgen.HTTP

	foreign atomic.Int64 // answers about another patient
}

// serve starts a service and its clients, who send that header.
func (c Config) serve(ctx context.Context, j Serving, id func(uint64) string, header http.Header) (*running, error) {
	srv, err := service.Start(ctx, c.patient(RoleServer, j))
	if err != nil {
		return nil, err
	}
	r, base := &running{Service: srv}, "http://"+srv.Address+"/api/v1/"
	var err1, err2, err3 error
	r.lookup, err1 = service.Patients("http://"+srv.Address, header, id, &r.foreign)
	r.search, err2 = loadgen.NewHTTP(loadgen.HTTPConfig{Header: header, URLFor: func(n uint64) string { return base + "patients?id=" + id(n) }})
	r.directory, err3 = loadgen.NewHTTP(loadgen.HTTPConfig{URL: base + "clinicians?" + url.Values{"email": {"team@org01.example"}, "org": {"Weir Road Surgery"}, "cache": {"false"}}.Encode()})
	return r, errors.Join(err1, err2, err3)
}

// stop ends the service and adds what it says to the run.
func (r *running) stop(ctx context.Context, run *results.Run) error {
	for _, h := range []*loadgen.HTTP{r.lookup, r.search, r.directory} {
		h.Close()
	}
	if n := r.foreign.Load(); n > 0 {
		return fmt.Errorf("%d answers were about another patient than the one asked for", n)
	}
	report := Served{ReuseRate: -1}
	exit, err := r.Stop(ctx, &report)
	if err != nil {
		return err
	}
	run.Killed, run.Process = exit.Killed, experiment.Process(report.Usage)
	run.Process.PeakRSS, run.Process.ReuseRate = max(run.Process.PeakRSS, exit.PeakRSS), report.ReuseRate
	if exit.Killed != "" {
		return nil
	}
	run.Extra[withoutConnection.Key] = float64(report.Without)
	run.Extra[refusedConnections.Key] += float64(report.Refused) // of two services together
	run.Extra[connections.Key] = float64(report.Open)
	addStack(run, report.Usage)
	if report.ReuseRate >= 0 {
		run.Extra[reuse.Key] = report.ReuseRate
	}
	return nil
}

// inTime is how long a user waits, whatever the service would allow.
const inTime = 2 * time.Second

// counted is how many requests were sent, and how many of them were answered well in time.
type counted struct {
	target *loadgen.HTTP

	sent, good atomic.Uint64
}

// Do implements loadgen.Target.
func (c *counted) Do(ctx context.Context, n uint64) loadgen.Outcome {
	outcome, _ := c.ask(ctx, n)
	return outcome
}

// ask returns what Retry-After says as well. What is answered late is late, whatever the
// answer.
func (c *counted) ask(ctx context.Context, n uint64) (loadgen.Outcome, time.Duration) {
	c.sent.Add(1)
	began := time.Now()
	outcome, after := c.target.Ask(ctx, n)
	switch {
	case outcome == loadgen.OK && time.Since(began) > inTime:
		return loadgen.Timeout, 0
	case outcome == loadgen.OK:
		c.good.Add(1)
	}
	return outcome, after
}

// addShare adds the share of the good ones, in per cent, if any were sent.
func (c *counted) addShare(run *results.Run) {
	if sent := c.sent.Load(); sent > 0 {
		run.Extra[criticalShare.Key] = 100 * float64(c.good.Load()) / float64(sent)
	}
}

// Waits of a client that was refused, unless the service asks for a longer one: a second,
// and then twice as long, and a random half more.
const (
	firstPause = time.Second
	mostPause  = 2 * time.Second
)

// insist asks again until it is answered or ctx ends, as a client does that heeds
// Retry-After.
func (c *counted) insist(ctx context.Context, n uint64) loadgen.Outcome {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		outcome, after := c.ask(ctx, n)
		if outcome == loadgen.OK || ctx.Err() != nil {
			return outcome
		}
		if service.Pause(ctx, max(after, pause)+rand.N(pause/2)) != nil {
			return outcome
		}
	}
}
