// Package postgres keeps patients and clinicians in PostgreSQL: a bounded pool of
// connections, and one statement that answers a question.
//
// What it says in errors never repeats the address, the login, or what was asked.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/sqlstate"
	"github.com/spillway-go/spillway/examples/patientapi/postgres/db"
)

// Without cgo there is no parser in C to build.
//go:generate env CGO_ENABLED=0 go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1 generate
//go:generate sh -c "cat sqlc.yaml queries.sql migrations/*.sql | sha256sum >db/sources.sha256"

// Config says where the database is. URL must be set.
type Config struct {
	// URL is as in postgres://user@host:5432/database. What it leaves out comes from the
	// variables and the password file that PostgreSQL's clients know, such as PGPASSWORD
	// and ~/.pgpass.
	URL string

	// Password is used instead of any other, if it is not empty.
	Password string

	// Connections is how many there are at most. Zero means a quarter of those that the
	// role, the database and the server allow, at least 4: all that share the role keep
	// room, and so does a rolling update, while it runs twice as many processes. How
	// many of them do some good is for a limiter to find out.
	Connections int

	// Reserved is how many of the allowed ones others of this process take.
	Reserved int
}

const (
	connectTimeout = 5 * time.Second
	// clientCheck is how often the server looks, during a statement, whether its client
	// is still there: a killed process leaves no statement behind.
	clientCheck = "SET client_connection_check_interval = '2s'"
	// After a refused connection its slot rests: for long where other connections do the
	// work, and briefly where there is none.
	longRest, briefRest = time.Second, 100 * time.Millisecond
	// A slot whose connection was given up rests until the other has tried again.
	yieldRest = 3 * time.Second
)

// Store finds patients and clinicians in PostgreSQL.
type Store struct {
	pool  *pgxpool.Pool
	slots *slots
	owed  atomic.Bool // one connection is to be given up

	yielded atomic.Int64 // when one was, in milliseconds
}

// parse returns the driver's form of cfg.
func (cfg Config) parse() (*pgxpool.Config, error) {
	pool, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil { // it repeats the address
		return nil, errors.New("postgres: the address cannot be used: write it as postgres://user@host:5432/database, and see that files it names can be read")
	}
	if cfg.Connections < 0 {
		return nil, fmt.Errorf("postgres: %d connections: want a positive number, or 0 for the default", cfg.Connections)
	}
	conn := pool.ConnConfig
	if cfg.Password != "" {
		conn.Password = cfg.Password
	}
	if conn.ConnectTimeout == 0 || conn.ConnectTimeout > connectTimeout {
		conn.ConnectTimeout = connectTimeout
	}
	conn.RuntimeParams["application_name"] = "patientapi"
	conn.RuntimeParams["datestyle"] = "ISO"
	pool.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, clientCheck)
		if sqlstate.CodeOf(err) != "" {
			return nil // before version 14, and not on Linux, there is no such setting
		}
		return err
	}
	pool.MaxConnLifetimeJitter = pool.MaxConnLifetime / 10
	return pool, nil
}

// Check reports what can be found wrong with cfg without the server.
func (cfg Config) Check() error {
	_, err := cfg.parse()
	return err
}

// Open connects to a database that holds that set of people. One that has no patients yet
// is filled first, all or nothing: of several processes that start at once one does it,
// and the others wait. A database that holds another set is an error and is left alone.
//
// It calls progress, if that is not nil, with the number of patients written.
func Open(ctx context.Context, cfg Config, set patientapi.Set, progress func(done int)) (*Store, error) {
	if err := set.Check(); err != nil {
		return nil, err
	}
	parsed, err := cfg.parse()
	if err != nil {
		return nil, err
	}
	room, err := prepare(ctx, parsed.ConnConfig, set, progress)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case cfg.Connections+cfg.Reserved > room:
		return nil, fmt.Errorf("postgres: %d connections, and %d of the audit: the role, the database and the server allow %d", cfg.Connections, cfg.Reserved, room)
	case cfg.Connections == 0:
		cfg.Connections = min(max(room/4, 4), max(room-cfg.Reserved, 1))
	}
	parsed.MaxConns, parsed.MinConns, parsed.MinIdleConns = int32(cfg.Connections), 0, 0
	pool, err := pgxpool.NewWithConfig(ctx, parsed)
	if err != nil {
		return nil, failed(ctx, err)
	}
	return &Store{pool: pool, slots: newSlots(cfg.Connections)}, nil
}

// query runs one question on a connection. The context's end cancels the statement.
func (s *Store) query(ctx context.Context, ask func(db.DBTX) error) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer s.release(conn)
	return failed(ctx, ask(conn))
}

// acquire waits for a connection. Where the server refuses one more, to this role or to
// all, the pool makes do with those that it has: the slot rests, and the caller waits
// for another.
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	for {
		if err := s.slots.take(ctx); err != nil {
			return nil, err
		}
		conn, err := s.pool.Acquire(ctx)
		if err == nil {
			return conn, nil
		}
		if sqlstate.CodeOf(err) != sqlstate.TooManyConnections {
			s.slots.give()
			return nil, failed(ctx, err)
		}
		if now := s.pool.Stat(); now.AcquiredConns()+now.IdleConns() == 0 {
			s.slots.rest(briefRest)
			return nil, failed(ctx, err)
		}
		s.slots.rest(longRest)
	}
}

func (s *Store) release(conn *pgxpool.Conn) {
	if s.owed.CompareAndSwap(true, false) {
		s.giveUp(conn)
		return
	}
	conn.Release()
	s.slots.give()
}

// Yield gives up a connection for a while, an idle one or else the next that is given
// back: for what of the same process is more urgent than lookups and was refused one. A
// pool keeps what it has for half an hour, though nobody asks. It does so once a second.
func (s *Store) Yield() {
	now, last := time.Now().UnixMilli(), s.yielded.Load()
	if now-last < 1000 || !s.yielded.CompareAndSwap(last, now) {
		return
	}
	select {
	case <-s.slots.free: // so no lookup waits for a connection that is looked at here
	default:
		s.owed.Store(true)
		return
	}
	idle := s.pool.AcquireAllIdle(context.Background())
	if len(idle) == 0 {
		s.slots.give()
		s.owed.Store(true)
		return
	}
	for _, conn := range idle[1:] {
		conn.Release()
	}
	s.giveUp(idle[0])
}

// giveUp closes a connection, and lets its slot rest until another may have it.
func (s *Store) giveUp(conn *pgxpool.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Conn().Close(ctx)
	conn.Release()
	s.slots.rest(yieldRest)
}

// Wait returns how long questions asked since the last call waited for a connection, on
// average, in seconds. It is for one limiter.Gauge: two readers would take it from each
// other.
func (s *Store) Wait() float64 { return s.slots.mean().Seconds() }

// Ping implements patientapi.Store. It waits for a connection as every question does.
func (s *Store) Ping(ctx context.Context) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer s.release(conn)
	return failed(ctx, conn.Ping(ctx))
}

// Close waits for the questions under way and closes all connections.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// Connections returns the use of the pool so far.
func (s *Store) Connections() patientapi.Connections {
	return patientapi.Connections{Max: cap(s.slots.free), Open: int(s.pool.Stat().TotalConns()), Peak: s.slots.stats().peak}
}
