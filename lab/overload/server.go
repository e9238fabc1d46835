package overload

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/httpapi"
	service "github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/probe"
	"github.com/spillway-go/spillway/examples/patientapi/sqlite"
	"github.com/spillway-go/spillway/lab/contestant"
)

// The headers in which a client describes its request.
const (
	timeoutHeader  = "X-Timeout-Ms" // how long it will wait for the answer
	priorityHeader = "X-Priority"   // "critical", or absent
	critical       = "critical"
)

// job is the input of a server contestant.
type job struct {
	Contestant string
	Work       Work
	Seed       uint64
	Patients   int
	Database   string        // path of the SQLite file
	Step       time.Duration // of the samples
}

func (j job) set() sqlite.Set { return sqlite.Set{Patients: j.Patients, Seed: 1} }

// served is what a server contestant reports when it is stopped.
type served struct {
	Usage   probe.Usage
	Peak    int // most queries in the database at one time
	Samples []sample
	State   string
}

// sample is one sample of a contestant.
type sample struct {
	At                      time.Time
	Limit, Running, Waiting int
}

// guarded is a store behind a contestant and in front of the scarce database.
type guarded struct {
	*sqlite.Store
	guard    *Guard
	database *Database
}

// Patient implements httpapi.Patients. The answer is not built in dst: a pool's worker
// may still be writing it when the caller has left.
func (g *guarded) Patient(ctx context.Context, id string, dst *patientapi.Patient) error {
	if p, ok := ctx.Value(priorityKey{}).(spillway.Priority); ok {
		ctx = spillway.WithPriority(ctx, p)
	}
	found := new(patientapi.Patient)
	err := g.guard.Do(ctx, func(ctx context.Context) error {
		if err := g.database.Ask(ctx); err != nil {
			return err
		}
		return g.Store.Patient(ctx, id, found)
	})
	dst.Clear()
	if err == nil {
		*dst = *found
	}
	return err
}

// server is the patient API over SQLite and the scarce database, behind a
// contestant. It is ready when it listens.
func server(ctx context.Context, contestantJob *contestant.Job) (any, error) {
	var j job
	if err := contestantJob.Input(&j); err != nil {
		return nil, err
	}
	db, err := sqlite.OpenSet(ctx, j.Database, j.set(), sqlite.Options{}, nil)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	database, err := NewDatabase(j.Work, j.Seed)
	if err != nil {
		return nil, err
	}
	guard, err := NewGuard(j.Contestant, j.Work.Slots)
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	store := &guarded{db, guard, database}
	// The unbounded pattern of the service: the contestant is the only bound.
	runner, err := service.New(service.Naive, service.Config{Workers: 1})
	if err != nil {
		return nil, err
	}
	api := httpapi.New(httpapi.Config{Runner: runner, Patients: store, Clinicians: directory.Alone(store), Health: store})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	web := &http.Server{Handler: fromHeaders(api), ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	api.SetReady(true)

	p := probe.Start()
	if err := contestantJob.Ready("http://" + listener.Addr().String()); err != nil {
		return nil, err
	}
	var report served
	tick := time.NewTicker(j.Step)
	defer tick.Stop()
	for up := true; up; {
		select {
		case now := <-tick.C:
			report.Samples = append(report.Samples, sample{now, guard.Limit(), guard.Running(), guard.Waiting()})
		case <-ctx.Done():
			up = false
		case err := <-failed:
			return nil, err
		}
	}
	report.Usage, report.Peak, report.State = p.Stop(), database.Peak(), guard.State()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return report, errors.Join(web.Shutdown(drain), runner.Drain(drain))
}

// priorityKey is for the priority of a request's header. The API gives requests the
// priority of their route, and here they are all for one.
type priorityKey struct{}

// fromHeaders gives each request the deadline and the priority of its headers.
func fromHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if ms, err := strconv.Atoi(r.Header.Get(timeoutHeader)); err == nil && ms > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
			defer cancel()
		}
		p := spillway.Normal
		if r.Header.Get(priorityHeader) == critical {
			p = spillway.Critical
		}
		ctx = context.WithValue(ctx, priorityKey{}, p)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
