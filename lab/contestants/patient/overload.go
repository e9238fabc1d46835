package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/priority"

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

// guarded is a store behind a contestant and in front of the scarce database.
type guarded struct {
	*sqlite.Store
	guard    *plan.Guard
	database *service.Database
}

// Patient implements patientapi.Store. The answer is not built in dst: a pool's worker
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

// overloaded is the patient API over SQLite and the scarce database, behind a contestant.
func overloaded(ctx context.Context, j service.Job, ready contestant.Ready) (*service.Served, error) {
	db, _, err := openSet(ctx, j.Patients)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	database := service.NewDatabase(j.Work, j.Seed)
	guard, err := newGuard(j.Pattern, j.Work.Slots)
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	// The unbounded pattern of the service: the contestant is the only bound.
	runner, err := patterns.New(patterns.Naive, patterns.Config{Workers: 1})
	if err != nil {
		return nil, err
	}
	store := &guarded{db, guard, database}
	api := httpapi.Config{Runner: runner, Patients: store, Clinicians: directory.Alone(store), Health: store}
	return serve(ctx, ready, api, fromHeaders, func(s *service.Sample) {
		s.Limit, s.InFlight, s.Queued = guard.Limit(), guard.Running(), guard.Waiting()
	})
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

func newGuard(name string, slots int) (*plan.Guard, error) {
	if name == plan.Failsafe {
		return failsafe(), nil
	}
	return plan.NewGuard(name, slots)
}

// failsafe is the adaptive limiter of failsafe-go with all defaults. It is the
// strongest available adaptive limiter for Go: it is maintained, and the only one
// with priorities. "spillway lab overload" measures it in front of this database.
func failsafe() *plan.Guard {
	prioritizer := adaptivelimiter.NewPrioritizer()
	lim := adaptivelimiter.NewBuilder[any]().BuildPrioritized(prioritizer)
	admit := func(ctx context.Context, fn func(context.Context) error) error {
		level := priority.Low
		if spillway.PriorityFrom(ctx) == spillway.Critical {
			level = priority.VeryHigh
		}
		permit, err := lim.AcquirePermitWithPriority(ctx, level)
		switch {
		case errors.Is(err, adaptivelimiter.ErrExceeded):
			return plan.ErrRefused
		case err != nil:
			return err
		}
		err = fn(ctx)
		if ctx.Err() != nil {
			permit.Drop() // as its own executor does with cancelled work
		} else {
			permit.Record()
		}
		return err
	}
	return &plan.Guard{
		Admit: admit, Limit: lim.Limit,
		Close: prioritizer.ScheduleCalibrations(context.Background(), 100*time.Millisecond), // how often it looks at its queue
	}
}
