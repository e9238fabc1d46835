package postgres

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// newWriter returns the number of a process on the roll.
func newWriter() int64 { return rand.Int64() }

const (
	enter  = "INSERT INTO audit_writers (writer) VALUES ($1) ON CONFLICT DO NOTHING"
	leave  = "DELETE FROM audit_writers WHERE writer = $1"
	others = "SELECT writer, since FROM audit_writers WHERE writer <> $1"
	still  = "SELECT FROM audit_writers WHERE writer = $1"
)

// present takes the lock that says that this process lives, on a new connection. A
// process that had lost all its connections may have passed for dead: it enters again.
func (s *Storage) present(ctx context.Context, c *pgx.Conn) error {
	if _, err := c.Exec(ctx, "SELECT pg_advisory_lock_shared($1)", s.writer); err != nil {
		return err
	}
	if !s.entered.Load() {
		return nil
	}
	_, err := c.Exec(ctx, enter, s.writer)
	return err
}

// Enter implements audit.Roll.
func (s *Storage) Enter(ctx context.Context, ended func(since time.Time) error) error {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return s.failed(err)
	}
	defer c.Release()
	if _, err := c.Exec(ctx, enter, s.writer); err != nil {
		return s.failed(err)
	}
	s.entered.Store(true)
	type other struct {
		Writer int64
		Since  time.Time
	}
	rows, err := c.Query(ctx, others, s.writer)
	if err != nil {
		return s.failed(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[other])
	if err != nil {
		return s.failed(err)
	}
	for _, o := range all {
		if err := strike(ctx, c.Conn(), o.Writer, func() error { return ended(o.Since) }); err != nil {
			return s.failed(err)
		}
	}
	return nil
}

// strike takes a process off the roll that lives no more, unless ended fails.
func strike(ctx context.Context, c *pgx.Conn, writer int64, ended func() error) (err error) {
	var dead bool
	if err := c.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", writer).Scan(&dead); err != nil || !dead {
		return err
	}
	defer func() {
		if _, failed := c.Exec(ctx, "SELECT pg_advisory_unlock($1)", writer); err == nil {
			err = failed
		}
	}()
	listed, err := c.Exec(ctx, still, writer)
	if err != nil || listed.RowsAffected() == 0 || ended() != nil {
		return err // another process was first, or it cannot be said now
	}
	_, err = c.Exec(ctx, leave, writer)
	return err
}

// Leave implements audit.Roll.
func (s *Storage) Leave(ctx context.Context) error {
	s.entered.Store(false)
	if _, err := s.pool.Exec(ctx, leave, s.writer); err != nil {
		return s.failed(err)
	}
	return nil
}
