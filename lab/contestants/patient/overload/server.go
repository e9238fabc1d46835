// Package overload plays the role of experiment overload: the patient API over SQLite
// behind each contestant.
package overload

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/httpapi"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/sqlite"
	"github.com/spillway-go/spillway/lab/contestant"
	plan "github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/service"
)

// Roles are the roles of experiment overload that need the patient API.
func Roles() map[string]contestant.Role {
	return map[string]contestant.Role{plan.RoleServer: server}
}

// guarded is a store behind a contestant and in front of the scarce database.
type guarded struct {
	*sqlite.Store
	guard    *plan.Guard
	database *service.Database
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

// server is the patient API over SQLite and the scarce database, behind a contestant.
func server(ctx context.Context, contestantJob *contestant.Job) (any, error) {
	var j service.Job
	if err := contestantJob.Input(&j); err != nil {
		return nil, err
	}
	set := sqlite.Set{Patients: j.Patients, Seed: 1}
	path, err := sqlite.DefaultPath(set)
	if err != nil {
		return nil, fmt.Errorf("no place for the database: %w", err)
	}
	db, err := sqlite.OpenSet(ctx, path, set, sqlite.Options{}, nil) // of an earlier session, or made now
	if err != nil {
		return nil, fmt.Errorf("%w; it belongs in your cache folder, which XDG_CACHE_HOME or HOME chooses", err)
	}
	defer db.Close()
	database := service.NewDatabase(j.Work, j.Seed)
	guard, err := newGuard(j.Pattern, j.Work.Slots)
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	store := &guarded{db, guard, database}
	// The unbounded pattern of the service: the contestant is the only bound.
	runner, err := patterns.New(patterns.Naive, patterns.Config{Workers: 1})
	if err != nil {
		return nil, err
	}
	api := httpapi.New(httpapi.Config{Runner: runner, Patients: store, Clinicians: directory.Alone(store), Health: store})
	api.SetReady(true)
	web := &http.Server{Handler: fromHeaders(api), ReadHeaderTimeout: 10 * time.Second}
	report, err := service.Serve(ctx, contestantJob, web, func(s *service.Sample) {
		s.Limit, s.InFlight, s.Queued = guard.Limit(), guard.Running(), guard.Waiting()
	})
	if err != nil {
		return nil, err
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return report, runner.Drain(drain)
}

// priorityKey is for the priority of a request's header. The API gives requests the
// priority of their route, and here they are all for one.
type priorityKey struct{}

// fromHeaders gives each request the deadline and the priority of its headers.
func fromHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if ms, err := strconv.Atoi(r.Header.Get(admissionhttp.HeaderDeadline)); err == nil && ms > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
			defer cancel()
		}
		p, _ := spillway.ParsePriority(r.Header.Get(admissionhttp.HeaderPriority)) // an error: normal
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, priorityKey{}, p)))
	})
}
