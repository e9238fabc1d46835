package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/priority"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/httpapi"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/sqlite"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/service"
)

// loaded is a service of an experiment of overload, behind a contestant.
func loaded(ctx context.Context, j overload.Job, ready contestant.Ready) (*service.Served, error) {
	return overload.Serve(ctx, j, ready, handlers, failsafe)
}

// handlers are what the services do that this program has.
var handlers = map[string]overload.Handler{
	overload.Patients:   patientAPI,
	overload.Sort:       onPool(sorted),
	overload.HotRows:    onPool(hotRow),
	overload.SQLite:     overload.Guarded(summing),
	overload.PostgreSQL: overload.Guarded(summing),
}

// guarded is a store behind a contestant and in front of the scarce database.
type guarded struct {
	*sqlite.Store
	guard    *overload.Guard
	database *service.Database
}

// Patient implements patientapi.Store. The answer is not built in dst: a pool's worker
// may still be writing it when the caller has left.
func (g *guarded) Patient(ctx context.Context, id string, dst *patientapi.Patient) error {
	found := new(patientapi.Patient)
	err := g.guard.Do(overload.Prioritized(ctx), func(ctx context.Context) error {
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

// patientAPI is the patient API over SQLite and the scarce database.
func patientAPI(ctx context.Context, j overload.Job, f *overload.Front) (http.Handler, error) {
	db, _, err := openSet(ctx, overload.PatientCount)
	if err != nil {
		return nil, err
	}
	f.AtEnd(func() { db.Close() })
	guard, err := f.Guard(j)
	if err != nil {
		return nil, err
	}
	// The unbounded pattern of the service: the contestant is the only bound.
	runner, err := patterns.New(patterns.Naive, patterns.Config{Workers: 1})
	if err != nil {
		return nil, err
	}
	f.AtEnd(func() { drained(ctx, runner) })
	store := &guarded{db, guard, service.NewDatabase(j.Work, j.Seed)}
	api, err := authenticated(httpapi.Config{Runner: runner, Patients: store, Clinicians: directory.Alone(store), Health: store})
	return overload.FromHeaders(0, api), err
}

// onPool is a service whose requests each use PostgreSQL.
func onPool(work func(*pgxpool.Pool) overload.Work) overload.Handler {
	return overload.Guarded(func(ctx context.Context, j overload.Job, f *overload.Front) (overload.Work, error) {
		config, err := pgxpool.ParseConfig(j.URL)
		if err != nil {
			return nil, errors.New("the database's address is no URL")
		}
		config.MaxConns = 60
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return nil, err
		}
		f.AtEnd(pool.Close)
		return work(pool), nil
	})
}

// sorted has PostgreSQL sort some rows.
func sorted(pool *pgxpool.Pool) overload.Work {
	const all, best = 5_000, 2_500
	return func(_ http.ResponseWriter, r *http.Request) error {
		var sum any
		from := 1 + rand.IntN(overload.Events-all)
		return pool.QueryRow(r.Context(), "SELECT sum(value) FROM (SELECT value FROM events WHERE id BETWEEN $1 AND $2 ORDER BY value, id LIMIT $3) AS first", from, from+all-1, best).Scan(&sum)
	}
}

// hotRow updates one of three rows and holds its lock for 3 ms.
func hotRow(pool *pgxpool.Pool) overload.Work {
	return func(_ http.ResponseWriter, r *http.Request) (err error) {
		ctx := r.Context()
		tx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() {
			if err != nil {
				_ = tx.Rollback(context.WithoutCancel(ctx))
			}
		}()
		if _, err = tx.Exec(ctx, "UPDATE events SET value = value + 1 WHERE id = $1", 1+rand.IntN(3)); err != nil {
			return err
		}
		if _, err = tx.Exec(ctx, "SELECT pg_sleep(0.003)"); err != nil {
			return err
		}
		return tx.Commit(ctx)
	}
}

// summedOften is the sum over the rows of a range, so many times over: it takes as many
// times as long and no more memory.
const summedOften = `WITH RECURSIVE pass(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM pass WHERE n < $3)
SELECT 0, sum(value), count(*) FROM pass CROSS JOIN events WHERE id BETWEEN $1 AND $2`

// summing asks a database for the sum of so many rows at a random place, so many times over.
func summing(ctx context.Context, j overload.Job, f *overload.Front) (overload.Work, error) {
	database, err := openSummed(ctx, j.Does, j.URL, overload.Events, summedOften)
	if err != nil {
		return nil, err
	}
	f.AtEnd(database.close)
	return sumsOf(database.ask), nil
}

func sumsOf(ask func(ctx context.Context, args ...any) error) overload.Work {
	return func(_ http.ResponseWriter, r *http.Request) error {
		rows, err1 := strconv.Atoi(r.FormValue("rows"))
		passes, err2 := strconv.Atoi(r.FormValue("passes"))
		if errors.Join(err1, err2) != nil || rows < 1 || rows >= overload.Events || passes < 1 {
			return fmt.Errorf("%w: want rows of 1 to %d, and passes of 1 or more", overload.ErrRequest, overload.Events-1)
		}
		from := 1 + rand.IntN(overload.Events-rows)
		return ask(r.Context(), from, from+rows-1, passes)
	}
}

// failsafe is the adaptive limiter of failsafe-go with all defaults. It is the
// strongest available adaptive limiter for Go: it is maintained, and the only one
// with priorities. "spillway lab overload" measures it in front of this database.
func failsafe() *overload.Guard {
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
			return overload.ErrRefused
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
	return &overload.Guard{
		Admit: admit, Limit: lim.Limit,
		Close: prioritizer.ScheduleCalibrations(context.Background(), 100*time.Millisecond), // how often it looks at its queue
	}
}
