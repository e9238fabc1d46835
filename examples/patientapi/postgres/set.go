package postgres

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/migrate"
	"github.com/spillway-go/spillway/examples/patientapi/internal/sqlstate"
	"github.com/spillway-go/spillway/examples/patientapi/postgres/db"
)

//go:embed migrations/*.sql
var migrations embed.FS

// starting is the advisory lock of the process that brings the schema up to date or
// fills the database.
const starting = 0x7370696c6c776179 // spillway

// prepare makes the database one that holds the set, and returns how many connections
// may be open at one time. It uses two.
func prepare(ctx context.Context, cfg *pgx.ConnConfig, set patientapi.Set, progress func(int)) (room int, err error) {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		advice := ""
		if sqlstate.CodeOf(err) == "" {
			advice = ": check the address, and that the server runs"
		}
		return 0, fmt.Errorf("postgres: cannot connect: %s%s", sqlstate.Cause(err), advice)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // gives the lock back
	}()
	if room, err = roomFor(ctx, conn); err != nil {
		return 0, fmt.Errorf("postgres: cannot read how many connections are allowed: %s", sqlstate.Cause(err))
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(starting)); err != nil {
		return 0, fmt.Errorf("postgres: cannot lock the database for the start: %s", sqlstate.Cause(err))
	}
	if err := bringUp(ctx, cfg); err != nil {
		return 0, fmt.Errorf("postgres: cannot bring the tables up to date: %s; a role needs a database of its own, or the right to create tables in it", sqlstate.Cause(err))
	}
	have, err := holds(ctx, db.New(conn))
	switch {
	case err != nil:
		return 0, fmt.Errorf("postgres: cannot read what the database holds: %s", sqlstate.Cause(err))
	case have == (contents{}):
		if err := seed(ctx, conn, set, progress); err != nil {
			return 0, fmt.Errorf("postgres: making %d patients: %s; nothing was kept", set.Patients, sqlstate.Cause(err))
		}
		return room, nil
	}
	return room, have.check(set)
}

func roomFor(ctx context.Context, conn *pgx.Conn) (room int, err error) {
	err = conn.QueryRow(ctx, `SELECT least(
		nullif((SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user), -1),
		nullif((SELECT datconnlimit FROM pg_database WHERE datname = current_database()), -1),
		current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int)`).Scan(&room)
	return room, err
}

// bringUp brings the tables up to date.
func bringUp(ctx context.Context, cfg *pgx.ConnConfig) error {
	pool := stdlib.OpenDB(*cfg)
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	return migrate.Up(ctx, goose.DialectPostgres, pool, migrations)
}

// contents is what a database holds; the zero value if it has no patients yet.
type contents struct {
	set       patientapi.Set
	generator int
}

func holds(ctx context.Context, q *db.Queries) (contents, error) {
	rows, err := q.Set(ctx)
	if err != nil || len(rows) == 0 {
		return contents{}, err
	}
	row := rows[0]
	seed, err := strconv.ParseUint(row.Seed, 10, 64)
	return contents{patientapi.Set{Patients: int(row.Patients), Seed: seed}, int(row.Generator)}, err
}

func (have contents) check(want patientapi.Set) error {
	switch {
	case have.generator != patientapi.GeneratorVersion:
		return fmt.Errorf("postgres: the database was made by generator version %d, this one is %d: drop it and make it again, or name another",
			have.generator, patientapi.GeneratorVersion)
	case have.set != want:
		return fmt.Errorf("postgres: the database holds %d patients of seed %d, not %d of seed %d: ask for those, or name another database",
			have.set.Patients, have.set.Seed, want.Patients, want.Seed)
	}
	return nil
}
