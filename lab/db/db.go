// Package db is the experiment that puts a limiter without any number in front of
// real databases, beside pools of every size.
package db

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/postgres"
	"github.com/spillway-go/spillway/lab/results"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, Config.plan, nil)

const help = `Clients ask a database back to back for sums over some thousand rows, which it computes from memory. As many queries run at one time as a pool of connections has, of 1 to 64, or as our limiter.New(limiter.Config{}) finds out, which is told nothing. The database is SQLite, in the contestant's own process, and PostgreSQL, if --postgres names one.

After some seconds each query becomes four times as dear. Throughput and the time that a query takes in the database are measured before that, and from five seconds after it.

Then the whole patient API is loaded over each of them with and without audit, which puts every access on record before it is answered, and is overloaded with it: is any answer without a record?

Every contestant runs in a process of its own, one after the other in a new order each repeat. The services with and without audit run side by side and are loaded in short turns.`

// The databases.
const (
	SQLite     = "SQLite"
	PostgreSQL = "PostgreSQL"
)

var engines = []string{SQLite, PostgreSQL}

// Spillway is the contestant that is told nothing; the others are pools.
const Spillway = "spillway"

// RoleBout is what the program plays: it takes a Bout and returns a map of figures.
const (
	RoleBout = "db-bout"
	program  = "patient"
)

// Config is what a user may set.
type Config struct {
	Database []string      `placeholder:"NAME" help:"Only these: SQLite, PostgreSQL. Goals about another one stay open."`
	Pool     []int         `group:"Size" default:"1,2,4,8,16,32,64" quick:"1,4,16" least:"1" most:"95" help:"The sizes of the pools."`
	Clients  int           `group:"Size" default:"64" least:"1" most:"1000" help:"How many clients ask at a time."`
	Rows     int           `group:"Size" default:"4000" least:"1" most:"25000" help:"Rows, of a table of 25 times as many, that a query sums up at first; later it is four times as many."`
	WarmUp   time.Duration `group:"Size" default:"4s" quick:"2s" above:"0s" help:"How long the limiter may find out before it is measured; pools need less."`
	Settle   time.Duration `group:"Size" default:"5s" quick:"2s" above:"0s" help:"How long it may find out again when queries have become dearer."`
	Time     time.Duration `group:"Size" default:"1500ms" quick:"500ms" above:"0s" help:"How long each measurement is."`

	Part         []string      `placeholder:"NAME" help:"Only this: pools (engine-4) or audit. The goal about the other one stays open."`
	AuditClients []int         `group:"Size" default:"64,128,256" quick:"32" least:"1" most:"1000" help:"Numbers of clients that ask the service whose audit is measured; the best of them counts."`
	AuditWarmUp  time.Duration `group:"Size" default:"1s" quick:"500ms" above:"0s" help:"How long each service is warmed up."`
	AuditTime    time.Duration `group:"Size" default:"3s" quick:"1s" above:"0s" help:"How long it is measured with each number of clients, in four turns."`

	Postgres postgres.Server `env:"SPILLWAY_POSTGRES" placeholder:"URL" help:"A PostgreSQL, as its superuser: postgres://user@host:port/postgres, with a password only in the environment. The experiment makes a database of its own for each repeat and drops it."`
}

// Bout is the input of a contestant.
type Bout struct {
	Engine                string
	URL                   string // of PostgreSQL's database
	Pool                  int    // 0: the limiter without a number
	Clients, Rows         int
	WarmUp, Settle, Timed time.Duration
	Seed                  uint64
}

const dearer = 4 // times

// Events is how many rows the table has.
func (b Bout) Events() int { return 25 * b.Rows }

// Dearer is how many rows a query sums up after the change.
func (b Bout) Dearer() int { return dearer * b.Rows }

// poolNeeds is how long a pool is warmed up, and may settle: it has nothing to find out.
const poolNeeds = 300 * time.Millisecond

func (c Config) bout(engine string, pool int, seed uint64) Bout {
	b := Bout{Engine: engine, Pool: pool, Clients: c.Clients, Rows: c.Rows, WarmUp: c.WarmUp, Settle: c.Settle, Timed: c.Time, Seed: seed}
	if pool > 0 {
		b.WarmUp, b.Settle = min(c.WarmUp, poolNeeds), min(c.Settle, poolNeeds)
	}
	return b
}

func (b Bout) takes() time.Duration { return b.WarmUp + b.Settle + 2*b.Timed + 500*time.Millisecond }

func poolOf(n int) string { return fmt.Sprintf("pool of %d", n) }

func key(engine, contestant string) ledger.Key {
	return ledger.Key{Setup: engine, Load: load, Pattern: contestant}
}

const load = "clients back to back"

// contestants are the pools, by name, and the limiter twice.
func (c Config) contestants(engine string) (keys []ledger.Key, sizes []int) {
	for _, n := range c.Pool {
		keys, sizes = append(keys, key(engine, poolOf(n))), append(sizes, n)
	}
	return append(keys, key(engine, Spillway).AndTwin(true)...), append(sizes, 0, 0)
}

func (c Config) plan() (experiment.Plan, error) {
	if err := cmp.Or(c.Postgres.Check(), experiment.Known("database", c.Database, engines), experiment.Known("part", c.Part, parts)); err != nil {
		return experiment.Plan{}, err
	}
	var p experiment.Plan
	for _, engine := range engines {
		if !experiment.Wanted(c.Database, engine) || engine == PostgreSQL && c.Postgres == "" {
			continue
		}
		if c.wants(pools) {
			p.Groups = append(p.Groups, c.bouts(engine))
		}
		if c.wants(audit) {
			p.Groups = append(p.Groups, c.audits(engine))
		}
	}
	if c.wants(pools) || c.Postgres != "" {
		p.Programs = append(p.Programs, contestant.Spec{Program: program, Role: RoleBout})
	}
	if c.wants(audit) {
		p.Programs = append(p.Programs, auditedSpec(Audited{}))
	}
	if len(p.Groups) == 0 {
		return p, postgres.ErrNone
	}
	if c.Postgres != "" {
		c.Postgres.Use(&p, 0)
	}
	return p, nil
}

// The parts of the experiment.
const (
	pools = "pools"
	audit = "audit"
)

var parts = []string{pools, audit}

func (c Config) wants(part string) bool { return experiment.Wanted(c.Part, part) }

// order is a random one of so many.
func (c Config) order(n int, seed uint64) []int { return rand.New(rand.NewPCG(seed, 4)).Perm(n) }

// bouts is the group that compares the limiter with all pools over one database.
func (c Config) bouts(engine string) experiment.Group {
	keys, sizes := c.contestants(engine)
	g := experiment.Group{Keys: keys, Label: engine + " · all pools, and the limiter", Run: func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
		return c.compare(ctx, engine, t.Seed)
	}}
	for _, n := range sizes {
		g.Expect += c.bout(engine, n, 0).takes()
	}
	return g
}

// compare measures every contestant over one database, in a random order.
func (c Config) compare(ctx context.Context, engine string, seed uint64) (runs []results.Run, err error) {
	keys, sizes := c.contestants(engine)
	url := ""
	if engine == PostgreSQL {
		database, err := c.Postgres.Open(ctx, postgres.Population{Events: c.bout(engine, 0, 0).Events()})
		if err != nil {
			return nil, err
		}
		defer func() { err = cmp.Or(err, database.Close()) }()
		url = database.URL
	}
	runs = make([]results.Run, len(keys))
	for _, i := range c.order(len(keys), seed) {
		b := c.bout(engine, sizes[i], seed)
		b.URL = url
		run := experiment.Alone(contestant.Spec{Program: program, Role: RoleBout, Input: b})
		if runs[i], err = run(ctx, experiment.Trial{Seed: seed}); err != nil {
			return nil, err
		}
		runs[i].Params = map[string]any{"pool": sizes[i], "settle_s": c.Settle.Seconds(), "clients": c.Clients}
	}
	return runs, nil
}
