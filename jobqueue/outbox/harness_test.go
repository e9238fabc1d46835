package outbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
	"github.com/spillway-go/spillway/jobqueue/jetstream"
	"github.com/spillway-go/spillway/jobqueue/memory"
)

// site is a database with the tables of an outbox, for one test.
type site struct {
	Dialect     Dialect
	Driver, DSN string
}

func (s site) open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open(s.Driver, s.DSN)
	noError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// onEach runs a test on SQLite and on PostgreSQL.
func onEach(t *testing.T, test func(t *testing.T, s site)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); test(t, onSQLite(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); test(t, onPostgreSQL(t)) })
}

// onAll runs a test on each database with each engine.
func onAll(t *testing.T, test func(t *testing.T, s site, q jobqueue.Queue)) {
	onEach(t, func(t *testing.T, s site) {
		t.Run("memory", func(t *testing.T) { test(t, s, inMemory(t, memory.Config{})) })
	})
	onEach(t, func(t *testing.T, s site) {
		t.Run("jetstream", func(t *testing.T) { test(t, s, inJetStream(t)) })
	})
}

func onSQLite(t testing.TB) site {
	t.Helper()
	path := filepath.ToSlash(filepath.Join(t.TempDir(), "orders.db"))
	s := site{SQLite, "sqlite", "file:" + (&url.URL{Path: path}).EscapedPath() +
		"?_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_txlock=immediate"}
	migrate(t, s)
	return s
}

// onPostgreSQL makes a database on the server at SPILLWAY_POSTGRES, the URL of a superuser, or on
// this machine's. Without a server the test is skipped, unless SPILLWAY_REQUIRE says that there has
// to be one.
func onPostgreSQL(t testing.TB) site {
	t.Helper()
	address := cmp.Or(os.Getenv("SPILLWAY_POSTGRES"), "postgres://postgres@127.0.0.1:5432/postgres")
	admin := site{PostgreSQL, "pgx", address}.open(t)
	if err := admin.PingContext(await.Context(t, "the server answers")); err != nil {
		missing := fmt.Sprintf("no PostgreSQL for the tests (%v): run scripts/ensure-postgres.sh FOLDER and set SPILLWAY_POSTGRES to what is in FOLDER/address", err)
		if slices.Contains(strings.Split(os.Getenv("SPILLWAY_REQUIRE"), ","), "postgres") {
			t.Fatal(missing)
		}
		t.Skip("SKIPPED, the outbox was not tried on a real PostgreSQL: " + missing)
	}
	name := "spillway_outbox_" + strings.ToLower(rand.Text())
	if _, err := admin.ExecContext(await.Context(t, "a database is created"), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.ExecContext(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	at, err := url.Parse(address)
	noError(t, err)
	at.Path = "/" + name
	s := site{PostgreSQL, "pgx", at.String()}
	migrate(t, s)
	return s
}

func migrate(t testing.TB, s site) {
	t.Helper()
	text, err := Schema(s.Dialect, "")
	noError(t, err)
	for range 2 { // the second time changes nothing
		if _, err := s.open(t).ExecContext(await.Context(t, "the tables are created"), text); err != nil {
			t.Fatal(err)
		}
	}
}

func inMemory(t testing.TB, cfg memory.Config) jobqueue.Queue {
	t.Helper()
	q, err := memory.Open(cfg)
	noError(t, err)
	t.Cleanup(func() { _ = q.Close() })
	return q
}

func inJetStream(t testing.TB) jobqueue.Queue {
	t.Helper()
	return overJetStream(t, jetstream.Config{Server: serve(t, embedded.Config{Dir: t.TempDir()})})
}

func serve(t testing.TB, cfg embedded.Config) *embedded.Server {
	t.Helper()
	server, err := embedded.Start(cfg)
	noError(t, err)
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	return server
}

func overJetStream(t testing.TB, cfg jetstream.Config) jobqueue.Queue {
	t.Helper()
	cfg.AckWait, cfg.Wait = await.Limit, cmp.Or(cfg.Wait, await.Limit) // on a busy disk an answer may take long
	var q jobqueue.Queue
	await.True(t, "the queue is open", func() bool { // Config.Wait may be short, and the disk slow
		var err error
		if q, err = jetstream.Open(t.Context(), cfg); err != nil && !errors.Is(err, jobqueue.ErrUnavailable) {
			t.Fatal(err)
		}
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	t.Cleanup(func() { _ = q.Close() })
	return q
}

// open opens an outbox that looks often.
func open(t testing.TB, s site, q jobqueue.Queue, cfg Config) *Box {
	t.Helper()
	cfg.Poll = cmp.Or(cfg.Poll, 5*time.Millisecond)
	b, err := New(s.open(t), s.Dialect, q, cfg)
	noError(t, err)
	return b
}

// commit enqueues jobs in a transaction and commits.
func commit(t testing.TB, b *Box, jobs ...jobqueue.Job) {
	t.Helper()
	noError(t, inTx(t.Context(), b, jobs...))
}

func inTx(ctx context.Context, b *Box, jobs ...jobqueue.Job) error {
	return b.within(ctx, func(tx *sql.Tx) error { return b.Enqueue(ctx, tx, jobs...) })
}

// begin calls Relay in the background until the test ends or stop is called, which returns the error
// of Relay.
func begin(t testing.TB, b *Box) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Relay(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return await.Receive(t, "Relay ends", ended) })
	t.Cleanup(func() { _ = stop() })
	return stop
}

// worker does jobs until the end of the test and counts them by key. It calls each after every job.
func worker(t testing.TB, q jobqueue.Queue, each ...func()) (done func() map[string]int) {
	var mu sync.Mutex
	keys := map[string]int{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- q.Work(ctx, func(_ context.Context, d *jobqueue.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			keys[d.Key]++
			for _, call := range each {
				call()
			}
			return nil
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(keys)
	}
}

// counts are the numbers of rows, and what the Box has done.
type counts struct {
	Stats
	Stored, Duplicates, Refusals, Failures uint64
}

func stats(t testing.TB, b *Box) counts {
	t.Helper()
	s, err := b.Stats(await.Context(t, "the outbox is counted"))
	noError(t, err)
	return counts{s, b.stored.Load(), b.duplicates.Load(), b.refusals.Load(), b.failures.Load()}
}

// empty waits until no row waits.
func empty(t testing.TB, b *Box) {
	t.Helper()
	await.True(t, "no row waits", func() bool { return stats(t, b).Waiting == 0 })
}

// recorder is a queue that notes the keys of acknowledged jobs, and fails as the test says.
type recorder struct {
	jobqueue.Queue
	before func(jobqueue.Job) error // may be nil
	after  func(jobqueue.Job)       // may be nil; the queue has acknowledged the job

	mu   sync.Mutex
	jobs []jobqueue.Job
}

func (r *recorder) Enqueue(ctx context.Context, job jobqueue.Job) (jobqueue.Receipt, error) {
	if r.before != nil {
		if err := r.before(job); err != nil {
			return jobqueue.Receipt{}, err
		}
	}
	receipt, err := r.Queue.Enqueue(ctx, job)
	if err == nil {
		r.mu.Lock()
		r.jobs = append(r.jobs, job)
		r.mu.Unlock()
		if r.after != nil {
			r.after(job)
		}
	}
	return receipt, err
}

func (r *recorder) keys() (keys []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, job := range r.jobs {
		keys = append(keys, job.Key)
	}
	return keys
}

var errPlanted = errors.New("planted")

// noError ends the test if there is an error.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
