package outbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/internal/engine"
)

// Config names the tables and sets how rows are relayed. The zero value works.
type Config struct {
	// Table is the name of the table, such as orders_outbox or, with a schema of the database,
	// orders.outbox. Two queues need two tables. Empty means spillway_outbox.
	Table string
	// Poll is the longest time between a commit and the next look at the table; Wake shortens the
	// wait. Jitter takes off at most a quarter. Zero means one second.
	Poll time.Duration
	// Parallel is how many rows are sent at once, at most 100, which is a whole batch. With 1 rows are
	// sent one after the other, in order. With 100 the rows of a batch share commits of a jetstream
	// queue that fsyncs, and lose their order within the batch; a few at once gain nothing there (go
	// test ./jobqueue/outbox -run - -bench Relay). Zero means 1.
	Parallel int
	// Logger gets a line for each failure before a back-off, for each refused job, and for the end
	// of a trouble. Nil means no log.
	Logger *slog.Logger
}

const (
	defaultPoll  = time.Second
	mostParallel = batchRows
	mostInserted = 1000 // jobs of one statement; SQLite binds at most 32,766 values
	perJob       = 5    // values of one job
)

// Box is an outbox: tables of the caller's database and the queue that their rows go to. A Box is
// safe for concurrent use.
type Box struct {
	db    *sql.DB
	queue jobqueue.Queue
	cfg   Config
	sql   statements
	lease time.Duration
	wake  chan struct{}

	counters
}

// New returns an outbox. New neither uses the database nor starts a goroutine. The tables must exist
// when the outbox is used: see [Schema]. Box closes neither db nor queue. A process that only
// enqueues may pass a nil db and a nil queue; all methods but Insert, Enqueue and Wake need both.
func New(db *sql.DB, d Dialect, queue jobqueue.Queue, cfg Config) (*Box, error) {
	cfg.Table = cmp.Or(cfg.Table, defaultTable)
	err := checkTable(d, cfg.Table)
	if cfg.Poll < 0 {
		err = errors.Join(err, fmt.Errorf("outbox: Poll is %s: it must not be negative (zero means %s)", cfg.Poll, defaultPoll))
	}
	if cfg.Parallel < 0 || cfg.Parallel > mostParallel {
		err = errors.Join(err, fmt.Errorf("outbox: Parallel is %d: use 1 to %d, or 0", cfg.Parallel, mostParallel))
	}
	if err != nil {
		return nil, err
	}
	cfg.Poll, cfg.Parallel = cmp.Or(cfg.Poll, defaultPoll), cmp.Or(cfg.Parallel, 1)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Box{db: db, queue: queue, cfg: cfg, sql: d.statements(cfg.Table), lease: defaultLease, wake: make(chan struct{}, 1)}, nil
}

// Execer is a transaction of the caller. *sql.Tx implements Execer, and *sql.Conn while a transaction
// was begun on the connection. On a *sql.DB the row is a transaction by itself.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Enqueue stores jobs in the caller's transaction. The jobs go to the queue after the commit, and a
// rollback removes them. All jobs are one statement, so that tx gets all jobs or none. The doc of
// Insert says which jobs are refused at once. Other errors are the database's: PostgreSQL then
// accepts nothing but a rollback.
//
// Call Wake after the commit to have the jobs relayed without the wait for Config.Poll.
func (b *Box) Enqueue(ctx context.Context, tx Execer, jobs ...jobqueue.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	query, args, err := b.Insert(ctx, jobs...)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, query, args...); err != nil {
		return fmt.Errorf("outbox: the database did not store %d jobs for the queue: %w", len(jobs), err)
	}
	return nil
}

// Insert returns the statement of Enqueue, for transactions that are no Execer, such as pgx.Tx:
//
//	query, args, err := box.Insert(ctx, job)
//	_, err = tx.Exec(ctx, query, args...)
//
// One statement takes 1 to 1,000 jobs. A job without a key gets a unique one, so that a row that is
// sent twice is one job. A job without a priority gets that of ctx. Insert returns an error for a
// negative delay, an unknown priority, a key of more than 512 bytes, text that is not valid UTF-8 or
// has a zero byte, and for headers that are reserved for the engine. Whether a job is too large for the queue shows when it
// is relayed.
func (b *Box) Insert(ctx context.Context, jobs ...jobqueue.Job) (query string, args []any, err error) {
	if len(jobs) == 0 || len(jobs) > mostInserted {
		return "", nil, fmt.Errorf("outbox: %d jobs for one statement: use 1 to %d", len(jobs), mostInserted)
	}
	var rows strings.Builder
	for i, job := range jobs {
		job.Key = cmp.Or(job.Key, rand.Text())
		if job.Priority == spillway.Normal {
			job.Priority = spillway.PriorityFrom(ctx)
		}
		if err := check(job); err != nil {
			return "", nil, err
		}
		header, err := json.Marshal(job.Header)
		if err != nil {
			return "", nil, err
		}
		payload := job.Payload
		if payload == nil {
			payload = []byte{} // drivers store nil as NULL
		}
		n := i * perJob
		fmt.Fprintf(&rows, ",($%d,$%d,$%d,$%d,$%d)", n+1, n+2, n+3, n+4, n+5)
		args = append(args, job.Key, int64(job.Priority), int64(job.Delay), string(header), payload)
	}
	return b.sql.insert(rows.String()[1:]), args, nil
}

// check returns why no queue can take the job, or why the table cannot hold the job.
func check(job jobqueue.Job) error {
	if err := engine.CheckJob(job); err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	if !storable(job.Key) {
		return fmt.Errorf("outbox: the key %.40q has a zero byte", job.Key)
	}
	for name, value := range job.Header {
		if !storable(name) || !storable(value) {
			return fmt.Errorf("outbox: header %.40q has a zero byte", name)
		}
	}
	return nil
}

// storable reports whether a text column of PostgreSQL can hold the text, which is UTF-8.
func storable(text string) bool { return !strings.ContainsRune(text, 0) }

// Wake makes a Relay of this Box look at the table at once. Call Wake after a commit. Wake never
// blocks and is cheap. A Relay that backs off after a failure does not wake.
func (b *Box) Wake() {
	select {
	case b.wake <- struct{}{}:
	default: // a wake-up is pending already
	}
}
