package main

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/spillway-go/spillway/lab/burn"
	_ "modernc.org/sqlite"
)

// kind is a backend and the work that it is asked for.
type kind struct {
	name, what string
	open       func(ctx context.Context, b *backend) error // sets work and version
}

// connections bounds the pools of the databases. More workers wait in the pool, as a service's requests do.
const connections = 64

var kinds = []kind{
	{"redis-script", "Redis: a script that computes, one at a time", openRedis},
	{"postgres-sort", "PostgreSQL: a sort of 10,000 rows, 64 connections", openSort},
	{"postgres-hotrows", "PostgreSQL: a transaction holds one of three rows for 3 ms, 64 connections", openHotRows},
	{"postgres-mixed", "PostgreSQL: three sums of 1,500 rows for each sort of 10,000, 64 connections", openMixed},
	{"sqlite-write", "SQLite: a transaction adds 50 rows, 64 connections that wait for each other", openSQLite},
	{"mariadb-update", "MariaDB: a transaction sums 1,500 rows and updates one of eight, 64 connections", openMariaDB},
	{"http-go", "an HTTP service in Go: 2 ms of computing around a call of 10 ms", openGo},
	{"http-python", "an HTTP service in Python: a thread for each connection, about a millisecond of computing in each request", openPython},
}

func openRedis(ctx context.Context, b *backend) error {
	c := redis.NewClient(&redis.Options{Addr: *redisAt, PoolSize: 128})
	b.onClose(func() { _ = c.Close() })
	script := redis.NewScript("local sum = 0 for i = 1, 60000 do sum = sum + i % 7 end return sum")
	b.work = func(ctx context.Context) error { return script.Run(ctx, c, nil).Err() }
	b.version = fmt.Sprint("Redis ", c.InfoMap(ctx, "server").Item("Server", "redis_version"))
	return b.work(ctx)
}

// tables makes rows to read, and rows that transactions wait for, in PostgreSQL.
var tables = []string{
	"drop schema if exists recording cascade",
	"create schema recording",
	"create table numbers (id int primary key, random float8 not null)",
	"insert into numbers select i, random() from generate_series(0, 29999) i",
	"create table hot (id int primary key, n int not null) with (fillfactor = 20)",
	"insert into hot select i, 0 from generate_series(0, 7) i",
	"analyze",
}

func openPostgres(ctx context.Context, b *backend) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(*postgres)
	if err != nil {
		return nil, err
	}
	config.MaxConns, config.ConnConfig.RuntimeParams["search_path"] = connections, "recording"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	b.onClose(pool.Close)
	for _, statement := range tables {
		if _, err := pool.Exec(ctx, statement); err != nil {
			return nil, err
		}
	}
	b.onClose(func() { _, _ = pool.Exec(context.WithoutCancel(ctx), "drop schema recording cascade") })
	return pool, pool.QueryRow(ctx, "select 'PostgreSQL ' || current_setting('server_version')").Scan(&b.version)
}

const (
	sorted = "select sum(random) from (select random from numbers where id between $1 and $1 + 9999 order by random limit 9999) q"
	summed = "select sum(random) from numbers where id between $1 and $1 + 1499"
)

func querying(pool *pgxpool.Pool, statement func() string) work {
	return func(ctx context.Context) error {
		var sum float64
		return pool.QueryRow(ctx, statement(), rand.IntN(20_000)).Scan(&sum)
	}
}

func openSort(ctx context.Context, b *backend) error {
	pool, err := openPostgres(ctx, b)
	b.work = querying(pool, func() string { return sorted })
	return err
}

func openMixed(ctx context.Context, b *backend) error {
	pool, err := openPostgres(ctx, b)
	b.work = querying(pool, func() string {
		if rand.IntN(4) == 0 {
			return sorted
		}
		return summed
	})
	return err
}

func openHotRows(ctx context.Context, b *backend) error {
	pool, err := openPostgres(ctx, b)
	b.work = func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "update hot set n = n + 1 where id = $1", rand.IntN(3)); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "select pg_sleep(0.003)")
			return err
		})
	}
	return err
}

func (b *backend) openSQL(driver, source string) (*sql.DB, error) {
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	b.onClose(func() { _ = db.Close() })
	return db, nil
}

// transaction returns work that does something and commits it.
func transaction(db *sql.DB, do func(ctx context.Context, tx *sql.Tx) error) work {
	return func(ctx context.Context) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := do(ctx, tx); err != nil {
			return err
		}
		return tx.Commit()
	}
}

func openSQLite(ctx context.Context, b *backend) error {
	db, err := b.openSQL("sqlite", "file:"+filepath.Join(b.dir, "db")+"?_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)&_txlock=immediate")
	if err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "create table notes (id integer primary key, random real not null); create index notes_random on notes (random)"); err != nil {
		return err
	}
	b.work = transaction(db, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "with recursive n (i) as (select 1 union all select i + 1 from n where i < 50) insert into notes (random) select random() from n")
		return err
	})
	return db.QueryRowContext(ctx, "select 'SQLite ' || sqlite_version()").Scan(&b.version)
}

func openMariaDB(ctx context.Context, b *backend) error {
	data, socket := filepath.Join(b.dir, "data"), filepath.Join(b.dir, "socket")
	install := exec.CommandContext(ctx, "mariadb-install-db", "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")
	if out, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	server := exec.Command("mariadbd", "--no-defaults", "--datadir="+data, "--socket="+socket, "--skip-networking", "--user=root", "--log-error="+filepath.Join(b.dir, "log"))
	if err := b.start(server, nil); err != nil {
		return err
	}
	db, err := b.openSQL("mysql", "root@unix("+socket+")/")
	if err != nil {
		return err
	}
	for began := time.Now(); db.PingContext(ctx) != nil; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > time.Minute || ctx.Err() != nil {
			return fmt.Errorf("mariadbd does not answer: %w", db.PingContext(ctx))
		}
	}
	for _, statement := range []string{
		"create database recording",
		"create table recording.numbers (id int primary key, random double not null) select seq id, rand() random from (with recursive n as (select 0 seq union all select seq + 1 from n where seq < 900) select a.seq * 30 + b.seq seq from n a join n b on b.seq < 30) q",
		"create table recording.hot (id int primary key, n int not null)",
		"insert into recording.hot values (0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0)",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	b.work = transaction(db, func(ctx context.Context, tx *sql.Tx) error {
		var sum float64
		from := rand.IntN(20_000)
		if err := tx.QueryRowContext(ctx, "select sum(random) from recording.numbers where id between ? and ?", from, from+1499).Scan(&sum); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "update recording.hot set n = n + 1 where id = ?", rand.IntN(8))
		return err
	})
	return db.QueryRowContext(ctx, "select concat('MariaDB ', version())").Scan(&b.version)
}

// serveUpstream is the service in Go. It prints its address.
func serveUpstream() {
	compute := burn.For(time.Millisecond)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr())
	err = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		compute()
		time.Sleep(10 * time.Millisecond)
		compute()
		_, _ = io.WriteString(w, "done\n")
	}))
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func openGo(_ context.Context, b *backend) error {
	b.version = runtime.Version()
	return b.openHTTP(exec.Command(os.Args[0], asUpstream))
}

//go:embed upstream.py
var upstreamInPython string

func openPython(ctx context.Context, b *backend) error {
	out, err := exec.CommandContext(ctx, "python3", "--version").Output()
	if err != nil {
		return err
	}
	b.version = string(out[:max(len(out)-1, 0)])
	return b.openHTTP(exec.Command("python3", "-c", upstreamInPython))
}

// openHTTP starts a service that prints its address, and asks it for its root.
func (b *backend) openHTTP(service *exec.Cmd) error {
	var address string
	if err := b.start(service, &address); err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}}
	b.onClose(client.CloseIdleConnections)
	b.work = func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("the service answered %s", resp.Status)
		}
		return nil
	}
	return nil
}
