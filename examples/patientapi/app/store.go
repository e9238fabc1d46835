package app

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/examples/patientapi"
	auditpostgres "github.com/spillway-go/spillway/examples/patientapi/audit/postgres"
	"github.com/spillway-go/spillway/examples/patientapi/postgres"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/examples/patientapi/sqlite"
	"github.com/spillway-go/spillway/limiter"
)

// StoreFlags say where patients come from.
type StoreFlags struct {
	Kind         string `name:"store" help:"Where patients come from: sqlite, simulated, or a PostgreSQL as postgres://user@host:5432/database, which is filled on first use. Only the environment may hold a password, as user:password@: other users of the machine see the command line." default:"sqlite" env:"SPILLWAY_STORE"`
	PasswordFile string `name:"store-password-file" help:"File with the password of the PostgreSQL; PGPASSWORD and ~/.pgpass work as well." env:"SPILLWAY_STORE_PASSWORD_FILE" placeholder:"FILE"`
	Connections  int    `name:"connections" help:"Most connections to the PostgreSQL; 0: a quarter of those that the role and the server allow. The audit has two more, unless it is off or in a file." default:"0" env:"SPILLWAY_CONNECTIONS"`
	DB           string `name:"db" help:"SQLite file, made on first use; a file in the user's cache folder unless given." env:"SPILLWAY_DB" placeholder:"FILE"`
	Readers      int    `help:"SQLite connections for reading; 0 picks." default:"0" env:"SPILLWAY_READERS"`
	Patients     int    `help:"How many patients there are." default:"100000" env:"SPILLWAY_PATIENTS"`
	Seed         uint64 `help:"Seed of the patients, and of injected latency and errors." default:"1" env:"SPILLWAY_SEED"`
}

// The kinds of stores.
const (
	sqliteStore    = "sqlite"
	simulatedStore = "simulated"
	postgresStore  = "postgres"
)

// kind returns which of them it is; empty if none. The flag itself may hold a password.
func (f StoreFlags) kind() string {
	switch {
	case f.Kind == sqliteStore || f.Kind == simulatedStore:
		return f.Kind
	case isPostgres(f.Kind):
		return postgresStore
	}
	return ""
}

func isPostgres(url string) bool {
	return strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://")
}

// store is where patients and clinicians come from.
type store interface {
	patientapi.Store
	io.Closer
}

// checkStore finds what can be found wrong before anything is touched.
func (c *Command) checkStore() error {
	switch f := c.Store; {
	case f.kind() == "": // not repeated: it may be a mistyped address with a password
		return usagef("unknown store: want sqlite, simulated, or an address as postgres://user@host:5432/database")
	case f.kind() != postgresStore && f.PasswordFile != "":
		return usagef("store-password-file is for a PostgreSQL, and store is %s", f.Kind)
	case f.kind() != postgresStore && f.Connections != 0:
		return usagef("connections is for a PostgreSQL, and store is %s", f.Kind)
	case f.Readers < 0:
		return usagef("readers is %d: it cannot be negative (0 picks)", f.Readers)
	case f.kind() == postgresStore:
		cfg, err := c.database()
		if err != nil {
			return err
		}
		return usage(cfg.Check())
	}
	return nil
}

// openStore opens the store without latency or errors, made first if need be.
func (c *Command) openStore(ctx context.Context, stderr io.Writer) (store, error) {
	var opened store
	var err error
	switch c.Store.kind() {
	case simulatedStore:
		opened, err = simulated.New(c.Store.Patients, c.Store.Seed)
	case postgresStore:
		opened, err = c.openPostgres(ctx, stderr)
	default:
		opened, err = c.openSQLite(ctx, stderr)
	}
	switch {
	case err == nil:
		return opened, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("stopped while the database was being made; nothing was kept: %w", ctx.Err())
	}
	return nil, usage(err)
}

func (c *Command) openSQLite(ctx context.Context, stderr io.Writer) (store, error) {
	path, err := c.patientFile()
	if err != nil {
		return nil, err
	}
	return sqlite.OpenSet(ctx, path, c.set(), sqlite.Options{Readers: c.Store.Readers}, c.progress(path, stderr))
}

// patientFile is where a SQLite store has the patients.
func (c *Command) patientFile() (string, error) {
	if c.Store.DB != "" {
		return c.Store.DB, nil
	}
	return sqlite.DefaultPath(c.set())
}

func (c *Command) set() patientapi.Set {
	return patientapi.Set{Patients: c.Store.Patients, Seed: c.Store.Seed}
}

func (c *Command) openPostgres(ctx context.Context, stderr io.Writer) (store, error) {
	cfg, err := c.database()
	if err != nil {
		return nil, err
	}
	return postgres.Open(ctx, cfg, c.set(), c.progress("the database", stderr))
}

// progress tells how far the making of a store is, twice a second.
func (c *Command) progress(what string, stderr io.Writer) func(done int) {
	said := time.Now()
	return func(done int) {
		if now := time.Now(); done == c.Store.Patients || now.Sub(said) > 500*time.Millisecond {
			said = now
			fmt.Fprintf(stderr, "making %s: %d of %d patients\n", what, done, c.Store.Patients)
		}
	}
}

// database says where the PostgreSQL is.
func (c *Command) database() (postgres.Config, error) {
	password, err := passwordIn("store-password-file", c.Store.PasswordFile)
	cfg := postgres.Config{URL: c.Store.Kind, Password: password, Connections: c.Store.Connections}
	if c.Audit.Mode == auditOn && c.Audit.DB == "" {
		cfg.Reserved = auditpostgres.Connections
	}
	return cfg, err
}

// mostPoolWait is how long requests wait for a connection of the database before the
// limiter lets less run. A question takes about a millisecond; a request that waits fifty
// times that had better wait in front of the service, where priorities count and the
// answer is known to be late.
const mostPoolWait = 50 * time.Millisecond

// signals returns those of the store.
func signals(s store) []limiter.Signal {
	if db, ok := s.(*postgres.Store); ok {
		return []limiter.Signal{limiter.Gauge("database connections", db.Wait, mostPoolWait.Seconds())}
	}
	return nil
}

// storeMetrics returns those of the store.
func storeMetrics(s store) []prometheus.Collector {
	if db, ok := s.(*postgres.Store); ok {
		return []prometheus.Collector{db}
	}
	return nil
}
