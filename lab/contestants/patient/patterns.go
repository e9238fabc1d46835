package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/httpapi"
	pattern "github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/examples/patientapi/sqlite"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	plan "github.com/spillway-go/spillway/lab/patterns"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
)

// slow gives a store the latency and the errors of the job, and returns it with the
// service's pattern.
func slow(j plan.Job, fast patientapi.Store) (*simulated.Injected, *pattern.Runner, error) {
	store, err := simulated.Inject(fast, simulated.Config{
		MinLatency: j.MinLatency, MaxLatency: j.MaxLatency, ErrorRate: j.ErrorRate, Seed: j.Seed,
	})
	if err != nil {
		return nil, nil, err
	}
	runner, err := pattern.New(j.Pattern, pattern.Config{Workers: j.Workers, QueueSize: j.QueueSize, QueueWait: j.QueueWait})
	return store, runner, err
}

// called is the contestant of the set-up in process: load generator, pattern and
// simulated store in one process, joined by function calls.
func called(ctx context.Context, j plan.Job) (results.Run, error) {
	people, err := simulated.New(j.Patients, 1)
	if err != nil {
		return results.Run{}, err
	}
	store, runner, err := slow(j, people)
	if err != nil {
		return results.Run{}, err
	}
	run, err := j.Play(ctx, plan.Subject{
		Answer: func(ctx context.Context, id string) ([]byte, error) {
			found, err := pattern.Run(ctx, runner, func(ctx context.Context, p *patientapi.Patient) error { return store.Patient(ctx, id, p) })
			if err != nil {
				return nil, err
			}
			defer found.Release() // after it is encoded, as the service does
			if j.Load == plan.Reuse {
				return json.Marshal(&found.Value)
			}
			return nil, nil
		},
		Alone: func(ctx context.Context, id string) ([]byte, error) {
			var p patientapi.Patient
			if err := people.Patient(ctx, id, &p); err != nil {
				return nil, err
			}
			return json.Marshal(&p)
		},
		Replies: func() (gets, made uint64, ok bool) {
			s := runner.Stats()
			return s.Responses, s.Responses - s.Reused, s.ReuseRate >= 0
		},
		PeakCalls: store.PeakCalls,
	})
	drain, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return run, errors.Join(err, runner.Drain(drain))
}

// served is the contestant of the set-up "for real": the service's own HTTP API
// over SQLite. It is ready when it listens.
func served(ctx context.Context, j plan.Job, ready contestant.Ready) (any, error) {
	db, err := sqlite.OpenSet(ctx, j.Database, sqlite.Set{Patients: j.Patients, Seed: 1}, sqlite.Options{Readers: plan.MaxConnections}, nil)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	store, runner, err := slow(j, db)
	if err != nil {
		return nil, err
	}
	asIs := func(h http.Handler) http.Handler { return h }
	api := httpapi.Config{Runner: runner, Patients: store, Clinicians: directory.Alone(store), Health: store, Timeout: plan.RequestTimeout}
	report, err := serve(ctx, ready, api, asIs, func(*service.Sample) {})
	if err != nil {
		return nil, err
	}
	run := results.Run{Process: experiment.Process(report.Usage), Extra: map[string]float64{"connections": float64(db.Connections().Open)}} // it keeps all
	plan.AddStack(&run, report.Usage)
	run.Process.ReuseRate = runner.Stats().ReuseRate
	if run.Process.ReuseRate >= 0 {
		run.Extra["reuse_true"] = run.Process.ReuseRate
	}
	return run, nil
}
