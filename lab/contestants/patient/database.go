package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/postgres/provision"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/postgres"
)

// kept is a database of an experiment's own: made, filled, and dropped at the end.
func kept(ctx context.Context, with postgres.Population, ready contestant.Ready) (_ struct{}, err error) {
	d, err := provision.New(ctx, os.Getenv(postgres.Env), postgres.Connections)
	if err != nil {
		return struct{}{}, err
	}
	defer func() { err = errors.Join(err, d.Drop(context.WithoutCancel(ctx))) }()
	conn, err := pgx.Connect(ctx, d.URL)
	if err != nil {
		return struct{}{}, err
	}
	if with != (postgres.Population{}) {
		err = fill(ctx, conn, with)
	}
	err = errors.Join(err, conn.Close(ctx))
	if err != nil {
		return struct{}{}, err
	}
	opened := postgres.Opened{URL: d.URL, Name: d.Name()}
	if opened.Server, opened.Most, err = serverOf(ctx); err != nil {
		return struct{}{}, err
	}
	if err := ready(opened); err != nil {
		return struct{}{}, err
	}
	<-ctx.Done()
	return struct{}{}, nil
}

// The tables are of the experiment, not of the service: a body that is found by its id, a
// directory that can be locked, and events to sum.
const tables = `
CREATE TABLE patients (id text PRIMARY KEY, body jsonb NOT NULL);
CREATE TABLE directory (id int PRIMARY KEY);
CREATE TABLE events (id int PRIMARY KEY, kind int NOT NULL, value int NOT NULL);`

func fill(ctx context.Context, conn *pgx.Conn, with postgres.Population) error {
	if _, err := conn.Exec(ctx, tables); err != nil {
		return err
	}
	gen := patientapi.Generator{Seed: 1}
	_, err := conn.CopyFrom(ctx, pgx.Identifier{"patients"}, []string{"id", "body"}, pgx.CopyFromSlice(with.Patients, func(i int) ([]any, error) {
		var p patientapi.Patient
		gen.Patient(i+1, &p)
		body, err := json.Marshal(&p)
		return []any{p.ID, body}, err
	}))
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "INSERT INTO events SELECT n, n % 7, n * 7919 % 1000 FROM generate_series(1, $1) n", with.Events); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "ANALYZE")
	return err
}

// serverOf is how many connections the server takes, and its process id, if it is on this
// machine and the superuser may read it.
func serverOf(ctx context.Context) (pid, most int, err error) {
	conn, err := pgx.Connect(ctx, os.Getenv(postgres.Env))
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, "SELECT current_setting('max_connections')::int").Scan(&most); err != nil {
		return 0, 0, err
	}
	var file string
	var local bool
	err = conn.QueryRow(ctx, `SELECT pg_read_file('postmaster.pid'), coalesce(inet_server_addr() << '127.0.0.0/8' OR inet_server_addr() = '::1', true)`).Scan(&file, &local)
	if err != nil || !local {
		return 0, most, nil // it is only needed to tell its processor time from that of others
	}
	first, _, _ := strings.Cut(file, "\n")
	pid, _ = strconv.Atoi(first)
	return pid, most, nil
}

// locked holds a table against everybody until ctx ends, as a migration does.
func locked(ctx context.Context, in postgres.Lock, ready contestant.Ready) (struct{}, error) {
	admin, err := url.Parse(os.Getenv(postgres.Env))
	if err != nil {
		return struct{}{}, errors.New("the superuser's address is no URL")
	}
	admin.Path = "/" + in.Database
	conn, err := pgx.Connect(ctx, admin.String())
	if err != nil {
		return struct{}{}, err
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		conn.Close(last) // which ends the transaction
	}()
	if _, err := conn.Exec(ctx, fmt.Sprintf("BEGIN; LOCK TABLE %s IN ACCESS EXCLUSIVE MODE", pgx.Identifier{in.Table}.Sanitize())); err != nil {
		return struct{}{}, err
	}
	if err := ready(true); err != nil {
		return struct{}{}, err
	}
	<-ctx.Done()
	return struct{}{}, nil
}
