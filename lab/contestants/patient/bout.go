package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	plan "github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/load/loadgen"
)

// summed is a database that is asked one statement, whose rows have three numbers.
type summed struct {
	ask   func(ctx context.Context, args ...any) error
	close func()
}

const (
	sums      = "SELECT kind, sum(value), count(*) FROM events WHERE id BETWEEN $1 AND $2 GROUP BY kind"
	readers   = 95                   // connections that are open at most
	askAgain  = 5 * time.Millisecond // after a refusal, at the earliest
	sqliteSet = `PRAGMA journal_mode = WAL;
CREATE TABLE events (id INTEGER PRIMARY KEY, kind INT NOT NULL, value INT NOT NULL);
WITH RECURSIVE of(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM of WHERE n < $1) INSERT INTO events SELECT n, n % 7, n * 7919 % 1000 FROM of;`
)

// bout is one contestant over one database.
func bout(ctx context.Context, b plan.Bout) (map[string]float64, error) {
	database, err := openSummed(ctx, b.Engine, b.URL, b.Events(), sums)
	if err != nil {
		return nil, err
	}
	defer database.close()
	lim, err := limiter.New(limiter.Config{})
	if err != nil {
		return nil, err
	}
	defer lim.Close()
	admit := lim.Do
	if b.Pool > 0 {
		pool := semaphore.NewWeighted(int64(b.Pool))
		admit = func(ctx context.Context, fn func(context.Context) error) error {
			if err := pool.Acquire(ctx, 1); err != nil {
				return err
			}
			defer pool.Release(1)
			return fn(ctx)
		}
	}
	g := game{Bout: b, database: database, admit: admit}
	figures, err := g.play(ctx)
	if b.Pool > 0 && figures != nil {
		figures["limit_before"], figures["limit_after"] = float64(b.Pool), float64(b.Pool)
	}
	return figures, err
}

// game is a bout under way.
type game struct {
	plan.Bout
	database *summed
	admit    func(context.Context, func(context.Context) error) error

	rows    atomic.Int64
	running atomic.Int64
	refused atomic.Int64
	failed  atomic.Pointer[error]
	timed   atomic.Pointer[measured] // nil: nothing is
}

// measured is a stretch that counts.
type measured struct {
	sync.Mutex
	took    histogram.Histogram // nanoseconds in the database
	atATime int64               // queries that ran, at each that began
}

func (m *measured) add(took time.Duration, running int64) {
	m.Lock()
	defer m.Unlock()
	m.took.Record(int64(took))
	m.atATime += running
}

// enter notes the figures of a phase. Where no query ended within the phase, only the rate
// is known.
func (m *measured) enter(figures map[string]float64, phase string, in time.Duration) {
	m.Lock()
	defer m.Unlock()
	n := float64(m.took.Count())
	figures[phase] = n / in.Seconds()
	if n > 0 {
		figures["p99_"+phase], figures["limit_"+phase] = float64(m.took.Quantile(.99)), float64(m.atATime)/n
	}
}

func (g *game) play(ctx context.Context) (map[string]float64, error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	g.rows.Store(int64(g.Rows))
	ended := make(chan error, 1)
	go func() {
		_, err := loadgen.Run(ctx, loadgen.Config{Target: loadgen.TargetFunc(g.ask), Closed: &loadgen.Closed{Clients: g.Clients, Duration: time.Hour}})
		ended <- err
	}()
	figures := map[string]float64{}
	for _, phase := range []struct {
		name    string
		settles time.Duration
		rows    int
	}{{"before", g.WarmUp, g.Rows}, {"after", g.Settle, g.Dearer()}} {
		g.rows.Store(int64(phase.rows))
		if err := service.Pause(ctx, phase.settles); err != nil {
			return nil, err
		}
		m, began := new(measured), time.Now()
		g.timed.Store(m)
		if err := service.Pause(ctx, g.Timed); err != nil {
			return nil, err
		}
		g.timed.Store(nil)
		m.enter(figures, phase.name, time.Since(began))
	}
	end()
	<-ended
	figures["refused"] = float64(g.refused.Load())
	if err := g.failed.Load(); err != nil {
		return nil, fmt.Errorf("a query failed: %w", *err)
	}
	return figures, nil
}

// ask is one query of a client.
func (g *game) ask(ctx context.Context, _ uint64) loadgen.Outcome {
	err := g.admit(ctx, func(ctx context.Context) error {
		m, began, rows := g.timed.Load(), time.Now(), int(g.rows.Load())
		now := g.running.Add(1)
		defer g.running.Add(-1)
		from := 1 + rand.IntN(g.Events()-rows)
		err := g.database.ask(ctx, from, from+rows-1)
		if m != nil && m == g.timed.Load() && err == nil { // began and ended in it
			m.add(time.Since(began), now)
		}
		return err
	})
	switch refusal, ok := errors.AsType[*spillway.Rejection](err); {
	case ok:
		g.refused.Add(1)
		_ = service.Pause(ctx, max(refusal.RetryAfter, askAgain))
	case err != nil && ctx.Err() == nil:
		g.failed.Store(&err)
	}
	return loadgen.FromError(err)
}

// openSummed opens PostgreSQL's database of that URL, or makes a SQLite file with a table of
// so many events.
func openSummed(ctx context.Context, engine, url string, events int, statement string) (*summed, error) {
	if engine == plan.PostgreSQL {
		return onPostgres(ctx, url, statement)
	}
	return onSQLite(ctx, events, statement)
}

func onPostgres(ctx context.Context, url, statement string) (*summed, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database's address is no URL")
	}
	config.MaxConns = readers
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &summed{close: pool.Close, ask: func(ctx context.Context, args ...any) error {
		found, err := pool.Query(ctx, statement, args...)
		if err != nil {
			return err
		}
		for found.Next() { // as a service reads them
			if _, err := found.Values(); err != nil {
				return err
			}
		}
		return found.Err()
	}}, nil
}

func onSQLite(ctx context.Context, events int, statement string) (_ *summed, err error) {
	folder, err := os.MkdirTemp("", "spillway-db-")
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(folder, "events.db")))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	db.SetMaxOpenConns(readers)
	db.SetMaxIdleConns(readers)
	done := func() { db.Close(); os.RemoveAll(folder) }
	if _, err := db.ExecContext(ctx, sqliteSet, events); err != nil {
		done()
		return nil, err
	}
	prepared, err := db.PrepareContext(ctx, statement)
	if err != nil {
		done()
		return nil, err
	}
	return &summed{close: done, ask: func(ctx context.Context, args ...any) error {
		found, err := prepared.QueryContext(ctx, args...)
		if err != nil {
			return err
		}
		defer found.Close()
		for found.Next() {
			var kind, sum, n int
			if err := found.Scan(&kind, &sum, &n); err != nil {
				return err
			}
		}
		return found.Err()
	}}, nil
}
