package main

import (
	"context"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/sqlite"
	plan "github.com/spillway-go/spillway/lab/patterns"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
)

// looked is a database that is asked for one patient at a time.
type looked func(id string) error

// Patient implements specimen.Store. What a pool hands on is no part of the comparison.
func (f looked) Patient(id string) (*specimen.Patient, error) {
	return &specimen.Patient{ID: id}, f(id)
}

// sizes loads pools of several sizes over a real database, whose connections are open before.
func sizes(ctx context.Context, in plan.Sizing) ([]results.Run, error) {
	look, done, err := lookedUp(ctx, in)
	if err != nil {
		return nil, err
	}
	defer done()
	var all sync.WaitGroup
	errs := make([]error, 2*readers)
	for i := range errs {
		all.Go(func() { errs[i] = look(in.Jobs[0].ID(uint64(i))) })
	}
	if all.Wait(); errors.Join(errs...) != nil {
		return nil, errors.Join(errs...)
	}
	return plan.Pools(ctx, in, look)
}

func lookedUp(ctx context.Context, in plan.Sizing) (_ looked, done func(), err error) {
	if in.URL == "" {
		db, err := sqlite.OpenSet(ctx, in.File, sqlite.Set{Patients: in.Patients, Seed: 1}, sqlite.Options{Readers: readers}, nil)
		if err != nil {
			return nil, nil, err
		}
		return func(id string) error {
			var p patientapi.Patient
			return db.Patient(ctx, id, &p)
		}, func() { db.Close() }, nil
	}
	config, err := pgxpool.ParseConfig(in.URL)
	if err != nil {
		return nil, nil, errors.New("the database's address is no URL")
	}
	config.MaxConns = readers
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	return func(id string) error {
		var body []byte
		return pool.QueryRow(ctx, "SELECT body FROM patients WHERE id = $1", id).Scan(&body)
	}, pool.Close, nil
}
