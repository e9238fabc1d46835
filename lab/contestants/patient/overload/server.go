// Package overload plays the role of experiment overload: the patient API over SQLite
// behind each contestant.
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
	"github.com/spillway-go/spillway/examples/patientapi/sqlite"
	"github.com/spillway-go/spillway/lab/contestant"
	plan "github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/usage"
)

// Roles are the roles of experiment overload that need the patient API.
func Roles() map[string]contestant.Role {
	return map[string]contestant.Role{plan.RoleServer: server}
}

// guarded is a store behind a contestant and in front of the scarce database.
type guarded struct {
	*sqlite.Store
	guard    *plan.Guard
	database *plan.Database
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
	var j plan.Job
	if err := contestantJob.Input(&j); err != nil {
		return nil, err
	}
	db, err := sqlite.OpenSet(ctx, j.Database, sqlite.Set{Patients: j.Patients, Seed: 1}, sqlite.Options{}, nil)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	database, err := plan.NewDatabase(j.Work, j.Seed)
	if err != nil {
		return nil, err
	}
	guard, err := newGuard(j.Contestant, j.Work.Slots)
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

	p := usage.Start()
	if err := contestantJob.Ready("http://" + listener.Addr().String()); err != nil {
		return nil, err
	}
	var report plan.Served
	tick := time.NewTicker(j.Step)
	defer tick.Stop()
	for up := true; up; {
		select {
		case now := <-tick.C:
			report.Samples = append(report.Samples, plan.Sample{At: now, Limit: guard.Limit(), Running: guard.Running(), Waiting: guard.Waiting()})
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
		if ms, err := strconv.Atoi(r.Header.Get(plan.TimeoutHeader)); err == nil && ms > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
			defer cancel()
		}
		p := spillway.Normal
		if r.Header.Get(plan.PriorityHeader) == plan.Critical {
			p = spillway.Critical
		}
		ctx = context.WithValue(ctx, priorityKey{}, p)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
