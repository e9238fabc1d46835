// Package postgres keeps audit records in a PostgreSQL database, beside what else the
// service keeps there.
package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/internal/migrate"
	"github.com/spillway-go/spillway/examples/patientapi/internal/sqlstate"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Connections is how many connections a Storage has at most. They are its own: a record
// must not wait behind lookups for one, nor be refused because lookups took them all.
const Connections = 2

// Storage is an audit.Storage and an audit.Roll. A commit is on the disk of the server
// before Append returns, whatever the default of the database is.
type Storage struct {
	// Refused, if it is not nil, is called when the server refuses a connection because
	// there are too many, so that others of the process may give up one. Set it before use.
	Refused func()

	pool    *pgxpool.Pool
	writer  int64       // the number of this process on the roll
	entered atomic.Bool // into the roll
}

// Open opens the records in the database at url, as in postgres://user@host:5432/database,
// and makes their tables if need be. A password that is not empty is used instead of any
// other. Errors do not repeat either. The server ends a transaction whose process says nothing
// for a second, or for idle_in_transaction_session_timeout of the url.
func Open(ctx context.Context, url, password string) (*Storage, error) {
	s := &Storage{writer: newWriter()}
	cfg, err := configure(url, password)
	if err != nil {
		return nil, err
	}
	// They are kept, whatever happens: once given up, they may be somebody else's.
	cfg.MinConns, cfg.MaxConnLifetime, cfg.HealthCheckPeriod = Connections, 0, checkEvery
	cfg.AfterConnect = s.present
	if s.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, s.failed(err)
	}
	if err := bringUp(ctx, s.pool); err != nil {
		s.pool.Close()
		return nil, s.failed(err)
	}
	return s, nil
}

// OpenExisting is Open for records that exist. It writes nothing. The error of a database without their
// tables matches audit.ErrNoRecords.
func OpenExisting(ctx context.Context, url, password string) (*Storage, error) {
	s := new(Storage)
	cfg, err := configure(url, password)
	if err != nil {
		return nil, err
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, s.failed(err)
	}
	if _, err := s.pool.Exec(ctx, selectTip); err != nil {
		s.pool.Close()
		if sqlstate.CodeOf(err) == sqlstate.UndefinedTable {
			return nil, fmt.Errorf("%w: %w", audit.ErrNoRecords, s.failed(err))
		}
		return nil, s.failed(err)
	}
	return s, nil
}

func configure(url, password string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil { // it repeats the address
		return nil, errors.New("the address of the PostgreSQL cannot be used: write it as postgres://user@host:5432/database")
	}
	if password != "" {
		cfg.ConnConfig.Password = password
	}
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
	}
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = Connections, 0, 0
	cfg.ConnConfig.RuntimeParams["application_name"] = "patientapi audit"
	cfg.ConnConfig.RuntimeParams["synchronous_commit"] = "on"
	if params := cfg.ConnConfig.RuntimeParams; params[pauseSetting] == "" {
		params[pauseSetting] = strconv.FormatInt(longestPause.Milliseconds(), 10)
	}
	return cfg, nil
}

const (
	connectTimeout = 5 * time.Second
	checkEvery     = 5 * time.Second // whether there are as many connections as there should be

	// longestPause is how long a process may keep the end of the chain from all others
	// without a word: it may be frozen, or cut off. Less than a commit of theirs may take.
	// A url that has the setting overrules it.
	longestPause = time.Second
	pauseSetting = "idle_in_transaction_session_timeout"
)

// fault says in our words what went wrong with the server.
type fault struct{ error }

func (f fault) Error() string { return "the audit records in PostgreSQL: " + sqlstate.Cause(f.error) }
func (f fault) Unwrap() error { return f.error }

func (s *Storage) failed(err error) error {
	if s.Refused != nil && sqlstate.CodeOf(err) == sqlstate.TooManyConnections {
		s.Refused()
	}
	return fault{err}
}

// startLock keeps processes that start at the same time from making the same tables.
const startLock = 0x7370696c6c617564

const schemaTable = "audit_schema"

func bringUp(ctx context.Context, pool *pgxpool.Pool) (err error) {
	lock, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Release()
	if _, err := lock.Exec(ctx, "SELECT pg_advisory_lock($1)", startLock); err != nil {
		return err
	}
	defer func() {
		_, failed := lock.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", startLock)
		err = errors.Join(err, failed)
	}()
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	return migrate.Up(ctx, goose.DialectPostgres, db, migrations, goose.WithTableName(schemaTable))
}

// Close implements audit.Storage.
func (s *Storage) Close() error {
	s.pool.Close()
	return nil
}

const (
	selectTip = "SELECT sequence, hash, seal, first, records FROM (SELECT 1) AS always " +
		"LEFT JOIN audit_head ON true LEFT JOIN (SELECT * FROM audit_blocks ORDER BY first DESC LIMIT 1) AS last ON true"
	selectAll   = "SELECT first, records FROM audit_blocks ORDER BY first"
	insertBlock = "INSERT INTO audit_blocks VALUES ($1, $2)"
	setHead     = "UPDATE audit_head SET sequence = $1, hash = $2, seal = $3"
	lockHead    = "SELECT FROM audit_head FOR UPDATE"
)

// Append implements audit.Storage. It waits for other processes that append. What it
// says to the server it says at two times, not at one for each statement.
func (s *Storage) Append(ctx context.Context, extend func(audit.Tip) (audit.Block, audit.Head, error)) error {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return s.failed(err)
	}
	defer c.Release() // closes it if the transaction was not ended
	err = s.write(ctx, c, extend)
	if err != nil && c.Conn().PgConn().TxStatus() != idle {
		_, _ = c.Exec(ctx, "rollback")
	}
	return err
}

const idle = 'I' // no transaction is open

func (s *Storage) write(ctx context.Context, c *pgxpool.Conn, extend func(audit.Tip) (audit.Block, audit.Head, error)) error {
	begin := new(pgx.Batch)
	begin.Queue("begin")
	begin.Queue(lockHead)
	begin.Queue(selectTip) // sees what was committed while it waited for the lock
	answers := c.SendBatch(ctx, begin)
	tip, err := tipIn(answers)
	if err := errors.Join(err, answers.Close()); err != nil {
		return s.failed(err)
	}
	block, head, err := extend(tip)
	if err != nil {
		return err
	}
	end := new(pgx.Batch)
	end.Queue(insertBlock, block.First, string(block.Records))
	end.Queue(setHead, head.Sequence, head.Hash[:], head.Seal[:])
	end.Queue("commit")
	if err := c.SendBatch(ctx, end).Close(); err != nil {
		return s.failed(err)
	}
	return nil
}

func tipIn(answers pgx.BatchResults) (audit.Tip, error) {
	for range 2 {
		if _, err := answers.Exec(); err != nil {
			return audit.Tip{}, err
		}
	}
	return audit.ScanTip(answers.QueryRow())
}

// Read implements audit.Storage.
func (s *Storage) Read(ctx context.Context, look func(audit.Head, iter.Seq2[audit.Block, error]) error) error {
	oneMoment := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return s.failed(err)
	}
	defer c.Release()
	return pgx.BeginTxFunc(ctx, c, oneMoment, func(tx pgx.Tx) error {
		// It holds no lock, so it may take its time. The server waits idly for the end of
		// the transaction when it has sent all, and that may be long before look is done.
		if _, err := tx.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
			return err
		}
		tip, err := audit.ScanTip(tx.QueryRow(ctx, selectTip))
		if err != nil {
			return err
		}
		return look(tip.Head, func(yield func(audit.Block, error) bool) {
			rows, err := tx.Query(ctx, selectAll)
			if err != nil {
				yield(audit.Block{}, err)
				return
			}
			defer rows.Close()
			audit.EachBlock(rows, yield)
		})
	})
}
