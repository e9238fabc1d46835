// Package app wires the patient service together: store, pattern, HTTP server,
// shutdown and report. Command is its command line, for kong; spillway serve is
// the same command.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/httpapi"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/probe"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/examples/patientapi/sqlite"
)

// ErrUsage is matched by errors that the user can mend by another command line
// or another place: a program that gets one exits with 2.
var ErrUsage = errors.New("bad input")

type usageError struct{ error }

func (usageError) Is(target error) bool { return target == ErrUsage }
func (e usageError) Unwrap() error      { return e.error }

// usage marks err as the user's to mend.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// Command is the service's command line. Its zero value is not usable: let kong
// fill it, or take Default.
type Command struct {
	Pattern string `help:"How requests are run: naive (a goroutine each, no bound), workerpool, optimized (workerpool with reused responses) or limiter." default:"limiter" env:"SPILLWAY_PATTERN"`
	Addr    string `help:"Address to listen on; port 0 picks a free one." default:"127.0.0.1:8080" env:"SPILLWAY_ADDR"`

	MaxConnections int `help:"How many connections of clients are open at one time; more wait to be accepted." default:"10000" env:"SPILLWAY_MAX_CONNECTIONS"`

	AdminAddr   string `help:"Address of the admin listener with /metrics, /health and pprof, such as 127.0.0.1:6060; off unless given." env:"SPILLWAY_ADMIN_ADDR" placeholder:"HOST:PORT"`
	AdminPublic bool   `help:"Allow an --admin-addr that other machines can reach. It asks nobody who they are." env:"SPILLWAY_ADMIN_PUBLIC"`

	Store    string `help:"Where patients come from: sqlite or simulated." default:"sqlite" env:"SPILLWAY_STORE"`
	DB       string `name:"db" help:"SQLite file, made on first use; a file in the user's cache folder unless given." env:"SPILLWAY_DB" placeholder:"FILE"`
	Readers  int    `help:"SQLite connections for reading; 0 picks." default:"0" env:"SPILLWAY_READERS"`
	Patients int    `help:"How many patients there are." default:"100000" env:"SPILLWAY_PATIENTS"`
	Seed     uint64 `help:"Seed of the patients, and of injected latency and errors." default:"1" env:"SPILLWAY_SEED"`

	Workers   int           `help:"How many lookups run at one time (not naive)." default:"20" env:"SPILLWAY_WORKERS"`
	QueueSize int           `help:"How many requests wait for their turn; 0: none (not naive)." default:"100" env:"SPILLWAY_QUEUE_SIZE"`
	QueueWait time.Duration `help:"How long a request waits for room in a full queue; 0: refuse at once (workerpool, optimized)." default:"0s" env:"SPILLWAY_QUEUE_WAIT"`
	Timeout   time.Duration `help:"Bound of each request; 0: none." default:"10s" env:"SPILLWAY_TIMEOUT"`

	Cache             string        `help:"What remembers clinicians beside the database: memory, none, or a Redis as redis://[user@]host[:port][/database]. Only the environment may hold a password, as user:password@: other users of the machine see the command line." default:"memory" env:"SPILLWAY_CACHE"`
	CachePasswordFile string        `help:"File with the password of the Redis." env:"SPILLWAY_CACHE_PASSWORD_FILE" placeholder:"FILE"`
	CacheTTL          time.Duration `name:"cache-ttl" help:"How long the cache remembers." default:"1m" env:"SPILLWAY_CACHE_TTL"`
	CacheTimeout      time.Duration `help:"How long a request waits for the cache before it is answered without." default:"100ms" env:"SPILLWAY_CACHE_TIMEOUT"`

	MinLatency time.Duration `help:"Least latency added to each store call." default:"50ms" env:"SPILLWAY_MIN_LATENCY"`
	MaxLatency time.Duration `help:"Most latency added to each store call." default:"100ms" env:"SPILLWAY_MAX_LATENCY"`
	ErrorRate  float64       `help:"Share of store calls that fail, 0 to 1." default:"0.05" env:"SPILLWAY_ERROR_RATE"`

	ShutdownTimeout time.Duration `help:"How long to wait for requests under way when told to stop." default:"10s" env:"SPILLWAY_SHUTDOWN_TIMEOUT"`
	DrainDelay      time.Duration `help:"How long to serve on after becoming not ready, for load balancers to notice." default:"0s" env:"SPILLWAY_DRAIN_DELAY"`
	JSON            bool          `name:"json" help:"For programs: one line of JSON on stdout when ready, and a report as JSON at the end." env:"SPILLWAY_JSON"`
}

// Default returns the command with its default values.
func Default() Command {
	return Command{
		Pattern: patterns.Limiter, Addr: "127.0.0.1:8080", MaxConnections: 10_000, Store: "sqlite", Patients: 100_000, Seed: 1,
		Workers: 20, QueueSize: 100, Timeout: 10 * time.Second,
		Cache: "memory", CacheTTL: time.Minute, CacheTimeout: directory.DefaultCacheTimeout,
		MinLatency: 50 * time.Millisecond, MaxLatency: 100 * time.Millisecond, ErrorRate: 0.05,
		ShutdownTimeout: 10 * time.Second,
	}
}

// Run serves until ctx ends, then stops intake, finishes what is under way and
// reports on stdout; progress and logs go to stderr. An error that matches
// ErrUsage left nothing behind. A shutdown that ran out of time is an error
// after the report.
func (c *Command) Run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	// The address first: it is the likeliest mistake, and the store is slow.
	listener, err := listen("addr", c.Addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	adminListener, err := c.listenAdmin()
	if err != nil {
		return err
	}
	if adminListener != nil {
		defer adminListener.Close()
	}
	base, err := c.openStore(ctx, stderr)
	if err != nil {
		return err
	}
	defer base.Close()
	store, err := simulated.Inject(base, c.injection())
	if err != nil {
		return usage(err)
	}
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	if c.JSON {
		logger = slog.New(slog.NewJSONHandler(stderr, nil))
	}
	cache, err := c.openCache()
	if err != nil {
		return err
	}
	if cache != nil {
		defer cache.Close()
	}
	c.tryCache(ctx, cache, logger)
	config := c.config(store, logger)
	config.Clinicians, err = directory.New(directory.Config{Store: store, Cache: cache, CacheTimeout: c.CacheTimeout, Logger: logger})
	if err != nil {
		return err
	}
	runner, err := patterns.New(c.Pattern, config)
	if err != nil {
		return usage(err)
	}
	api := httpapi.New(httpapi.Config{Runner: runner, Store: base, Timeout: c.Timeout, Logger: logger})
	s := &service{cmd: c, base: base, store: store, runner: runner, api: api, logger: logger}
	if adminListener != nil {
		defer s.serveAdmin(adminListener, stderr)()
	}
	return s.run(ctx, listener, stdout)
}

// check finds what can be found wrong before anything is touched.
func (c *Command) check() error {
	if c.Store != "sqlite" && c.Store != "simulated" {
		return usagef("unknown store %q: want sqlite or simulated", c.Store)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"timeout", c.Timeout}, {"shutdown-timeout", c.ShutdownTimeout}, {"drain-delay", c.DrainDelay}} {
		if d.value < 0 {
			return usagef("%s is %v: it cannot be negative", d.name, d.value)
		}
	}
	switch {
	case c.Patients < 1 || c.Patients > patientapi.MaxPatients:
		return usagef("patients is %d: want 1 to %d", c.Patients, patientapi.MaxPatients)
	case c.CacheTTL < time.Millisecond:
		return usagef("cache-ttl is %v: want 1ms or more", c.CacheTTL)
	case c.CacheTimeout <= 0:
		return usagef("cache-timeout is %v: want more than 0; --cache none does without a cache", c.CacheTimeout)
	case c.MaxConnections < 1:
		return usagef("max-connections is %d: want at least 1", c.MaxConnections)
	case c.Readers < 0:
		return usagef("readers is %d: it cannot be negative (0 picks)", c.Readers)
	}
	if _, err := c.adminAddr(); err != nil {
		return err
	}
	if err := c.hidesPassword(os.Args); err != nil {
		return err
	}
	cache, err := c.openCache()
	if err != nil {
		return err
	}
	if cache != nil {
		_ = cache.Close()
	}
	// The parts know their own rules; a store of one patient is quick to make.
	probe, err := simulated.New(1, 0)
	if err != nil {
		return err
	}
	if _, err := simulated.Inject(probe, c.injection()); err != nil {
		return usage(err)
	}
	_, err = patterns.New(c.Pattern, c.config(probe, nil))
	return usage(err)
}

func (c *Command) injection() simulated.Config {
	return simulated.Config{MinLatency: c.MinLatency, MaxLatency: c.MaxLatency, ErrorRate: c.ErrorRate, Seed: c.Seed}
}

func (c *Command) config(store patientapi.Store, logger *slog.Logger) patterns.Config {
	return patterns.Config{Store: store, Workers: c.Workers, QueueSize: c.QueueSize, QueueWait: c.QueueWait, Logger: logger}
}

// openStore opens the store without latency or errors, made first if need be.
func (c *Command) openStore(ctx context.Context, stderr io.Writer) (patientapi.Store, error) {
	if c.Store == "simulated" {
		store, err := simulated.New(c.Patients, c.Seed)
		return store, usage(err)
	}
	set := sqlite.Set{Patients: c.Patients, Seed: c.Seed}
	path := c.DB
	if path == "" {
		var err error
		if path, err = sqlite.DefaultPath(set); err != nil {
			return nil, usage(err)
		}
	}
	said := time.Now()
	progress := func(done int) {
		if now := time.Now(); done == c.Patients || now.Sub(said) > 500*time.Millisecond {
			said = now
			fmt.Fprintf(stderr, "making %s: %d of %d patients\n", path, done, c.Patients)
		}
	}
	store, err := sqlite.OpenSet(ctx, path, set, sqlite.Options{Readers: c.Readers}, progress)
	switch {
	case err == nil:
		return store, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("stopped while the database was being made; nothing was kept: %w", ctx.Err())
	}
	return nil, usage(err)
}

// Report is what a run amounted to.
type Report struct {
	Pattern  string           `json:"pattern"`
	Store    string           `json:"store"`
	Requests httpapi.Outcomes `json:"requests"`
	Runner   patterns.Stats   `json:"runner"`
	Process  probe.Usage      `json:"process"` // from ready to drained

	StoreCalls       uint64              `json:"store_calls"`
	StoreFailures    uint64              `json:"store_failures"` // injected
	StoreMeanLatency float64             `json:"store_mean_latency_seconds"`
	PeakStoreCalls   int                 `json:"peak_store_calls"`
	Connections      *sqlite.Connections `json:"connections,omitempty"`
	Clinicians       directory.Stats     `json:"clinicians"`

	// Abandoned says what was left undone when the shutdown timeout ended; empty
	// when everything was finished.
	Abandoned string `json:"abandoned,omitempty"`
}

// Ready is the first line of a run with JSON.
type Ready struct {
	Ready bool   `json:"ready"`
	Addr  string `json:"addr"`
	Admin string `json:"admin,omitempty"` // address of the admin listener
	PID   int    `json:"pid"`
}
