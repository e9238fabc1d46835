package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/front"
	"github.com/spillway-go/spillway/examples/patientapi/httpapi"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/examples/patientapi/sqlite"
	"github.com/spillway-go/spillway/lab/contestant"
	plan "github.com/spillway-go/spillway/lab/patterns"
	"github.com/spillway-go/spillway/lab/service"
)

// served is the service's own HTTP API over SQLite, or over a PostgreSQL whose connections
// are few, under one of its patterns. It is ready when it listens.
func served(ctx context.Context, j plan.Serving, ready contestant.Ready) (*plan.Served, error) {
	config := patterns.Config{Workers: max(j.Workers, 1), QueueSize: j.QueueSize}
	var api httpapi.Config
	var report func(*plan.Served)
	if j.URL == "" {
		db, err := sqlite.OpenSet(ctx, j.File, sqlite.Set{Patients: j.Patients, Seed: 1}, sqlite.Options{Readers: j.Connections}, nil)
		if err != nil {
			return nil, err
		}
		defer db.Close()
		store, err := simulated.Inject(db, simulated.Config{MinLatency: j.MinLatency, MaxLatency: j.MaxLatency, ErrorRate: j.ErrorRate, Seed: j.Seed})
		if err != nil {
			return nil, err
		}
		api = httpapi.Config{Patients: store, Clinicians: directory.Alone(store), Health: store}
		report = func(s *plan.Served) { s.Open = db.Connections().Open } // it keeps all
	} else {
		store := &connected{work: service.Work{Min: j.MinLatency, Max: j.MaxLatency}}
		if err := store.open(ctx, j); err != nil {
			return nil, err
		}
		defer func() { go store.pool.Close() }() // it waits for queries that nobody waits for
		api = httpapi.Config{Patients: store, Clinicians: directory.Alone(store), Health: store}
		report = func(s *plan.Served) { s.Refused, s.Without = store.refused.Load(), store.without.Load() }
	}
	if j.Pattern == patterns.Adaptive { // as the service is unless it is told otherwise
		config.SlowStart, api.Deadlines = 2*time.Second, front.DefaultDeadlines()
	}
	var err error
	if api.Runner, err = patterns.New(j.Pattern, config); err != nil {
		return nil, err
	}
	used, err := serve(ctx, ready, api, func(*service.Sample) {})
	if used == nil {
		return nil, err
	}
	// That it could not be drained is no failure of the run: naive leaves much undone.
	out := &plan.Served{Served: *used, ReuseRate: api.Runner.Stats().ReuseRate}
	report(out)
	return out, nil
}

// connected is a store whose answers take a connection for as long as they take.
type connected struct {
	patientapi.Store // for what nobody asks

	work service.Work
	pool *pgxpool.Pool

	refused, without atomic.Int64
}

func (s *connected) open(ctx context.Context, j plan.Serving) error {
	config, err := pgxpool.ParseConfig(j.URL)
	if err != nil {
		return errors.New("the database's address is no URL")
	}
	config.MaxConns = int32(j.Connections)
	config.ConnConfig.TLSConfig, config.ConnConfig.Fallbacks = nil, nil // of one attempt one refusal
	if j.Renewed > 0 {
		config.MaxConnLifetime = j.Renewed
	}
	s.pool, err = pgxpool.NewWithConfig(ctx, config)
	return err
}

// query runs one statement on a connection, and counts what came without.
func (s *connected) query(ctx context.Context, into any, statement string, args ...any) error {
	began := time.Now()
	conn, err := s.pool.Acquire(ctx)
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok && refusal.Code == tooMany {
		s.refused.Add(1)
	}
	if err != nil && ctx.Err() == nil || time.Since(began) > plan.TooLong {
		s.without.Add(1)
	}
	if err != nil {
		return unavailable(ctx, err)
	}
	defer conn.Release()
	args = append(args, s.work.Time(rand.New(rand.NewPCG(rand.Uint64(), 0))).Seconds())
	return unavailable(ctx, conn.QueryRow(ctx, statement, args...).Scan(into, nil))
}

// tooMany is what the server answers for a connection more than the role, or all, may have.
const tooMany = "53300"

// unavailable is the error as a store has it.
func unavailable(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, pgx.ErrNoRows):
		return patientapi.ErrNotFound
	}
	return fmt.Errorf("%w: %w", patientapi.ErrUnavailable, err)
}

// Patient implements httpapi.Patients.
func (s *connected) Patient(ctx context.Context, id string, dst *patientapi.Patient) error {
	dst.Clear()
	var body []byte
	if err := s.query(ctx, &body, "SELECT body, pg_sleep($2)::text FROM patients WHERE id = $1", id); err != nil {
		return err
	}
	return json.Unmarshal(body, dst)
}

// Clinicians implements directory.ClinicianStore: it finds nobody, in the table that may be
// locked.
func (s *connected) Clinicians(ctx context.Context, _ patientapi.ClinicianQuery) ([]patientapi.Clinician, error) {
	var n int
	return nil, s.query(ctx, &n, "SELECT count(*), pg_sleep($1)::text FROM directory")
}

// Ping implements httpapi.Pinger.
func (s *connected) Ping(context.Context) error { return nil }
