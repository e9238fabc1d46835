// Package mixes is the experiment that puts work of several lengths, each with its own
// deadline, in front of a real database, and asks what becomes of each kind behind each way
// of bounding it.
package mixes

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/postgres"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, Config.plan, nil)

const help = `A small HTTP service answers each request by one query of a database, which computes a sum from memory. Requests are of several kinds: each has its length and its deadline, which it says in a header. They come in an open loop, Poisson, at a multiple of what the database can do.

lookups: nine lookups of 1 ms, which wait a second, to one report of 100 ms, which waits ten seconds; at 0.6 and 1.5 times what the database can do.

lengths: six kinds of 1 to 200 ms, which wait 250 ms to five seconds; at 0.4 and 1.5 times.

At 1.5 times what it can do a queue grows by half a second each second, and who waits ten seconds is late after twenty. A surge comes first, of five times what the database can do (--surge), until a service without a limit has a queue as long as the most patient wait.

The contestants bound the query by: nothing (none); golang.org/x/sync/semaphore of the right size, which is measured first, with a wait of 200 ms (semaphore); failsafe-go's adaptive limiter (failsafe); our limiter.New(limiter.Config{}), told nothing (spillway). The database is SQLite, in the service's own process, and PostgreSQL, if --postgres names one.

Each contestant runs alone, in a process of its own, in a new order each repeat, and all of a repeat get the same requests. --quick --repeats 1 shows each of them once within two minutes.`

// The databases.
const (
	SQLite     = "SQLite"
	PostgreSQL = "PostgreSQL"
)

var engines = []string{SQLite, PostgreSQL}

// The contestants.
const (
	None      = "none"      // every query goes straight to the database
	Semaphore = "semaphore" // of the right size, which a query waits for no longer than Wait
	Failsafe  = "failsafe"  // the best published adaptive limiter
	Spillway  = "spillway"  // ours: limiter.Config{}, no configuration
)

var names = []string{None, Semaphore, Failsafe, Spillway}

// Wait is how long a query waits for the semaphore.
const Wait = 200 * time.Millisecond

// RoleServer is what the program plays: a service that takes a Job.
const (
	RoleServer = "mixes-server"
	program    = "patient"
)

// Events is how many rows the table has.
const Events = 100_000

// Job is the input of a service.
type Job struct {
	Engine     string
	URL        string // of PostgreSQL's database
	Contestant string
	Slots      int // of the semaphore
}

// Config is what a user may set.
type Config struct {
	Contestant []string        `placeholder:"NAME" help:"Only these: none, semaphore, failsafe, spillway. Goals that need another one stay open."`
	Database   []string        `placeholder:"NAME" help:"Only these: SQLite, PostgreSQL. Goals about another one stay open."`
	Mix        []string        `placeholder:"NAME" help:"Only these: lookups, lengths. Goals about another one stay open."`
	WarmUp     time.Duration   `group:"Size" default:"2s" quick:"1s" above:"0s" help:"How long the same load comes before each measurement, and above the capacity after the surge."`
	Time       time.Duration   `group:"Size" default:"4s" quick:"1500ms" above:"0s" help:"How long a measurement is. Then the load goes on until all of that is answered."`
	Surge      float64         `group:"Size" default:"5" least:"1" most:"20" help:"The load, in multiples of what the database can do, that comes first above the capacity, until the most patient would wait for as long as they do; 1 sends none, and then a queue is as long only after a --warm-up of twice the longest deadline."`
	MostLag    time.Duration   `default:"50ms" help:"A run whose clients sent later than that (p99) is made again, twice at most; if they still do, it does not count."`
	MemoryCap  int             `default:"2048" least:"0" placeholder:"MIB" help:"A contestant that needs more memory than that is killed; 0 sets no limit."`
	Postgres   postgres.Server `env:"SPILLWAY_POSTGRES" placeholder:"URL" help:"A PostgreSQL, as its superuser: postgres://user@host:port/postgres, with a password only in the environment. The experiment makes a database of its own for each run and drops it."`
}

// kind is work of one length.
type kind struct {
	name     string
	length   int // milliseconds that its query takes alone
	deadline time.Duration
	parts    int // of the requests
}

// mix is kinds of work that come together.
type mix struct {
	id, name     string
	below, above float64 // the loads, in multiples of what the database can do
	kinds        []kind
}

var mixes = []mix{
	{"lookups", "lookups beside reports", .6, 1.5, []kind{
		{"lookups of 1 ms", 1, time.Second, 9},
		{"reports of 100 ms", 100, 10 * time.Second, 1},
	}},
	{"lengths", "six lengths", .4, 1.5, []kind{
		{"1 ms", 1, 250 * time.Millisecond, 7},
		{"3 ms", 3, 500 * time.Millisecond, 5},
		{"8 ms", 8, time.Second, 3},
		{"25 ms", 25, 2 * time.Second, 2},
		{"70 ms", 70, 3 * time.Second, 2},
		{"200 ms", 200, 5 * time.Second, 1},
	}},
}

// key is the cell of all kinds together.
func (x mix) key(engine string, times float64, contestant string) ledger.Key {
	return ledger.Key{Setup: engine + ", " + x.name, Load: service.Multiple(times), Pattern: contestant}
}

// of is the cell of one kind, beside that of all.
func of(all ledger.Key, k kind) ledger.Key {
	all.Load += ", " + k.name
	return all
}

// longest is how long the most patient kind waits.
func (x mix) longest() (most time.Duration) {
	for _, k := range x.kinds {
		most = max(most, k.deadline)
	}
	return most
}

func (c Config) plan() (experiment.Plan, error) {
	var ids []string
	for _, x := range mixes {
		ids = append(ids, x.id)
	}
	if err := cmp.Or(c.Postgres.Check(), experiment.Known("contestant", c.Contestant, names), experiment.Known("database", c.Database, engines), experiment.Known("mix", c.Mix, ids)); err != nil {
		return experiment.Plan{}, err
	}
	m := &measurement{Config: c, gauges: map[string]gauge{}}
	p := experiment.Plan{
		Programs: []contestant.Spec{{Program: program, Role: RoleServer}},
		Prepare:  m.prepare,
		Serving:  func() int { return int(m.server.Load()) },
	}
	for _, engine := range c.engines() {
		for _, x := range c.mixes() {
			for _, times := range []float64{x.below, x.above} {
				for _, name := range names {
					if experiment.Wanted(c.Contestant, name) {
						p.Groups = append(p.Groups, m.groups(engine, x, times, name)...)
					}
				}
			}
		}
	}
	if len(p.Groups) == 0 {
		return p, postgres.ErrNone
	}
	return p, nil
}

// engines are the databases that are wanted and there.
func (c Config) engines() []string {
	return slices.DeleteFunc(slices.Clone(engines), func(name string) bool {
		return !experiment.Wanted(c.Database, name) || name == PostgreSQL && c.Postgres == ""
	})
}

func (c Config) mixes() []mix {
	return slices.DeleteFunc(slices.Clone(mixes), func(x mix) bool { return !experiment.Wanted(c.Mix, x.id) })
}

// groups measure one contestant under one load; Spillway twice where it has to refuse.
func (m *measurement) groups(engine string, x mix, times float64, name string) (out []experiment.Group) {
	for _, all := range x.key(engine, times, name).AndTwin(name == Spillway && times > 1) {
		keys := []ledger.Key{all}
		for _, k := range x.kinds {
			keys = append(keys, of(all, k))
		}
		out = append(out, experiment.Group{
			Keys: keys, Label: strings.Join([]string{all.Setup, all.Load, name}, " · "), Expect: m.expect(x, times, name),
			Run: func(ctx context.Context, t experiment.Trial) (runs []results.Run, err error) {
				if times > 1 && name == None { // whose queries take the processors from its clients, too: that is a result
					return m.run(ctx, engine, x, times, name, t.Seed)
				}
				_, err = m.flags().InTime(func() (all results.Run, err error) {
					if runs, err = m.run(ctx, engine, x, times, name, t.Seed); err == nil {
						all = runs[0]
					}
					return all, err
				})
				return runs, err
			},
		})
	}
	return out
}

// stretches are the load of a run, of which the last but one counts. Above the capacity a
// surge makes the queue in which the most patient wait for as long as they do: it would
// come by itself, many seconds later.
func (c Config) stretches(x mix, times, capacity float64) (all []service.Stretch) {
	if times > 1 && c.Surge > 1 {
		all = []service.Stretch{{Rate: c.Surge * capacity, For: time.Duration(float64(x.longest()) / (c.Surge - 1))}}
	}
	rate := times * capacity
	return append(all, service.Stretch{Rate: rate, For: c.WarmUp}, service.Stretch{Rate: rate, For: c.Time}, service.Stretch{Rate: rate, For: x.longest() + service.Patience})
}

// expect is how long a run takes: without a bound the most patient wait for nearly as long
// as they can.
func (c Config) expect(x mix, times float64, name string) (d time.Duration) {
	all := c.stretches(x, times, 1)
	for _, s := range all[:len(all)-1] {
		d += s.For
	}
	switch {
	case times < 1:
		return d + time.Second
	case name == None:
		return d + x.longest()
	}
	return d + 3*time.Second/2
}

// measurement makes the runs.
type measurement struct {
	Config
	gauges map[string]gauge // by the set-up; prepare fills it
	server atomic.Int64     // process id of PostgreSQL
}
