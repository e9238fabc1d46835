// Package patterns is experiment H: a patient API under three published concurrency
// patterns, in the published shape; beside it ours, for real.
package patterns

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/postgres"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/usage"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, Plan, Roles())

const help = `A patient is looked up by id, in a store that takes 50 to 100 ms and fails 5 % of the time. It is done under the published patterns (naive: a goroutine for every request; workerpool: 20 workers and a queue of 100, refusing when full; optimized: the same with reused response objects) and by a limiter of ours. The published shape is the published code, rebuilt, at its published size, and decides the claims. Ours stand beside it for real: over HTTP to a server with a SQLite file that has the same latency and errors added and refuses at once.

Clients send back to back, each its share of the requests: 1,000 by 100 clients (low), 10,000 by 1,000 (high), 50,000 by 500 (sustained). Other sizes give other answers, so a claim about the sizes stays open when others were run. Published pools of several sizes and queues are compared over real stores (SQLite, PostgreSQL if there is one) and look-ups that compute. The source's stories of a service without a bound are played over HTTP: requests at a query that does not answer, a naive service beside another one on the same SQLite file, and with --postgres 10,000 users at a database of 100 connections, a table that somebody locks, and two services on one database, beside the published patterns by a service that is told no number.

Every contestant runs in a process of its own under a memory cap. Refusals, errors and successes are never mixed.`

// program plays every role that needs the patient API.
const program = "patient"

// The roles of its contestants.
const (
	RoleServer   = "patterns-server"   // of a Serving
	RoleDatabase = "patterns-database" // of a number of patients: the path of its file
	RoleSizes    = "patterns-look-ups" // of a Sizing

	rolePublished = "patterns-published"
	roleComputing = "patterns-computing"
	roleAccepted  = "patterns-accepted"
	roleStalled   = "patterns-stalled"
	roleFilled    = "patterns-filled"
)

// The set-ups.
const (
	Shape = "published shape" // the published code itself, rebuilt; always at the published size
	Real  = "for real"        // ours: HTTP on loopback to a server in its own process, SQLite, refused at once
)

// The loads.
const (
	Low       = "low"
	High      = "high"
	Sustained = "sustained"
	Brisk     = "above 1,000/s"   // H10: a fast store, and every request is admitted
	Reuse     = "reuse"           // H9: a fast store, so that objects are reused often
	Few       = "20 in flight"    // H16: the same look-ups, a store of 0 to 1 ms
	Many      = "1,000 in flight" // H16
	Parked    = "parked"          // H11: goroutines that only wait
	Looking   = "looking up"      // H11: goroutines in the published look-up
)

// The contestants: the published patterns and ours, and what H4 and H9 are about.
const (
	Naive      = specimen.Naive
	WorkerPool = specimen.WorkerPool
	Optimized  = specimen.Optimized
	Limiter    = "limiter" // only ours

	Warm      = specimen.Warm      // only of the published shape: the receiver gives every reply back
	Uncleared = specimen.Uncleared // owned correctly, never cleared
)

var contestants = []string{Naive, WorkerPool, Optimized, Limiter}

// Config is what a user may set.
type Config struct {
	Contestant []string      `placeholder:"NAME" help:"Only these patterns: naive, workerpool, optimized, limiter. Claims that need another one stay open."`
	Requests   int           `group:"Size" default:"0" quick:"1000" least:"0" help:"Requests of every load, also of those that are part of one claim only; 0: each load's own number."`
	Clients    int           `group:"Size" default:"0" least:"0" help:"Clients of every load; 0: each load's own number."`
	Workers    int           `group:"Size" default:"0" least:"0" help:"Workers of the pools and slots of the limiter; 0: 20."`
	QueueSize  int           `group:"Size" default:"100" least:"0" help:"Requests that may wait for a worker; 0: none."`
	QueueWait  time.Duration `group:"Size" default:"100ms" least:"0s" help:"How long a request waits for room in a full queue. For real it is refused at once."`
	MinLatency time.Duration `group:"Size" default:"50ms" least:"0s" help:"Least time the store takes."`
	MaxLatency time.Duration `group:"Size" default:"100ms" help:"Most time the store takes."`
	ErrorRate  float64       `group:"Size" default:"0.05" least:"0" most:"0.999" help:"Share of store calls that fail."`
	SizeTime   time.Duration `group:"Size" default:"6s" quick:"1s" least:"60ms" help:"Twelve times as long as a pool of each size is loaded; the pools take turns."`
	Users      int           `group:"Size" default:"10000" quick:"1000" least:"1" most:"100000" help:"Users that ask a database of 100 connections at once."`
	Calm       time.Duration `group:"Size" default:"4s" quick:"1s" least:"100ms" help:"How long all is well before something happens; an adaptive service has two or three times as long to find out how much it can do."`
	Stalled    time.Duration `group:"Size" default:"30s" quick:"6s" least:"1s" help:"How long a table of the real database stays locked."`
	Beside     time.Duration `group:"Size" default:"5s" quick:"2s" whole:"3s" least:"1s" help:"How long a service beside another one on the same database is watched."`
	Patients   int           `group:"Size" default:"100000" quick:"1000" least:"1" most:"999999" help:"Patients in the database, which is made on first use and kept in your cache folder."`
	Scenario   []string      `placeholder:"NAME" help:"Only these of the scenarios on PostgreSQL, and nothing else: crowd (H6), stall (H7), neighbours (H8). All other claims stay open."`
	MemoryCap  int           `default:"2048" least:"0" placeholder:"MIB" help:"A contestant that needs more memory than that is killed, which is a result; 0 sets no limit."`

	Postgres postgres.Server `env:"SPILLWAY_POSTGRES" placeholder:"URL" help:"A PostgreSQL on which H5 to H8 are measured, as its superuser: postgres://user@host:port/postgres, with a password only in the environment. The experiment makes a database and a role with 100 connections for each measurement, and drops them. Without it H6 and the goals stay open."`
}

// Roles are the roles that need no patient API.
func Roles() map[string]contestant.Role {
	return map[string]contestant.Role{
		rolePublished: contestant.Func(published),
		roleComputing: contestant.Func(func(ctx context.Context, in Sizing) ([]results.Run, error) { return Pools(ctx, in, nil) }),
		roleAccepted:  contestant.Func(playAccepted),
		roleStalled:   contestant.Server(stalledServer),
		roleFilled:    contestant.Func(filled),
	}
}

// Plan is what a session with these settings runs.
func Plan(c Config) (p experiment.Plan, err error) {
	if c.MinLatency > c.MaxLatency {
		return p, fmt.Errorf("min-latency %v is above max-latency %v: swap them, or raise max-latency", c.MinLatency, c.MaxLatency)
	}
	if err := cmp.Or(experiment.Known("contestant", c.Contestant, contestants), c.checkScenarios(), c.enoughFiles()); err != nil {
		return p, err
	}
	p.Programs = []contestant.Spec{{Program: program, Role: RoleServer}}
	if c.Postgres != "" {
		c.Postgres.Use(&p, postgres.ServerConnections)
	}
	var file string
	p.Cells = c.scenes(&file)
	if len(c.Scenario) > 0 {
		return p, nil
	}
	prepare := p.Prepare
	p.Prepare = func(ctx context.Context) error { // makes it once, or finds that of an earlier session
		_, err := contestant.Run(ctx, contestant.Spec{Program: program, Role: RoleDatabase, Input: c.Patients}, &file)
		if err == nil && prepare != nil {
			err = prepare(ctx)
		}
		return err
	}
	for _, r := range c.rules() {
		p.Groups = append(p.Groups, c.group(r, &file))
	}
	c.addMemory(&p)
	c.addAccepted(&p)
	for _, k := range c.keys() {
		cell := experiment.Cell{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Expect: c.expect(k)}
		cell.Beside, cell.Uses = beside(k)
		cell.Run = func(ctx context.Context, t experiment.Trial) (results.Run, error) {
			j := c.job(k, t.Seed)
			if k.Setup == Real {
				return j.serveAndLoad(ctx, file)
			}
			return c.run(ctx, c.spec(rolePublished, j), j.Params())
		}
		p.Cells = append(p.Cells, cell)
	}
	return p, nil
}

// sizes are the requests and clients of each load. How many requests a client has decides
// how many are refused.
var sizes = map[string][2]int{
	Low: {1_000, 100}, High: {10_000, 1_000}, Sustained: {50_000, 500}, Brisk: {10_000, 120}, Reuse: {5_000, 100},
	Few: {8_000, 20}, Many: {8_000, 1_000}, Parked: {1, 10_000}, Looking: {1, 10_000},
}

// someWorkers are those of the published pool.
const someWorkers = 20

// job is what a cell runs: the published size, unless the user says otherwise.
func (c Config) job(k ledger.Key, seed uint64) Job {
	j := Job{Config: c, Load: k.Load, Pattern: k.Pattern, Seed: seed, WarmUp: k.Load == Brisk || k.Pattern == Warm}
	if k.Setup == Real {
		j.QueueWait = 0
	}
	switch k.Load {
	case Reuse:
		j.MinLatency, j.MaxLatency, j.ErrorRate = 0, 0, 0
	case Brisk, Few, Many:
		j.MinLatency, j.MaxLatency = 0, time.Millisecond
	case Parked, Looking: // goroutines, which no user's size is about
		j.Clients = 0
	}
	j.Requests, j.Clients, j.Workers = cmp.Or(j.Requests, sizes[k.Load][0]), cmp.Or(j.Clients, sizes[k.Load][1]), cmp.Or(j.Workers, someWorkers)
	return j
}

// process is what it takes to start one and to end it.
const process = 300 * time.Millisecond

// expect is roughly how long a contestant needs.
func (c Config) expect(k ledger.Key) time.Duration {
	j := c.job(k, 0)
	quota, turns := float64(j.Requests)/float64(j.Clients), 1.1
	if k.Pattern != Naive {
		turns = float64(min(j.Clients, j.Workers+j.QueueSize)) / float64(j.Workers)
		if quota > 20 {
			turns *= 0.65 // the clients that are refused take some of them
		}
	}
	latency := max((j.MinLatency+j.MaxLatency)/2, 1100*time.Microsecond) // an idle process sleeps no shorter
	return process + time.Duration(quota*turns*float64(latency))
}

// keys are the cells. Claims that compare times need a twin of one side.
func (c Config) keys() (out []ledger.Key) {
	add := func(setup, load string, patterns ...string) {
		for _, p := range patterns {
			if k := (ledger.Key{Setup: setup, Load: load, Pattern: p}); c.wants(p) {
				out = append(out, k.AndTwin(p == WorkerPool && setup == Shape)...)
			}
		}
	}
	for _, load := range []string{Low, High, Sustained} {
		add(Shape, load, Naive, WorkerPool, Optimized, Warm)
	}
	add(Real, Low, contestants...)
	add(Real, High, contestants...)
	add(Shape, Brisk, WorkerPool, Optimized, Warm)
	add(Shape, Reuse, Uncleared, Warm)
	for _, load := range []string{Few, Many, Looking, Parked} {
		add(Shape, load, Naive)
	}
	return out
}

// wants reports whether the user chose the contestant, or the one that it is a form of.
func (c Config) wants(pattern string) bool {
	form := map[string]string{
		Warm: Optimized, Uncleared: Optimized, Ours: WorkerPool,
		Unprotected: Naive, Unqueued: Naive, Pooled: WorkerPool, Told: Limiter, Adaptive: Limiter,
	}[pattern]
	return experiment.Wanted(c.Contestant, cmp.Or(form, pattern))
}

// besideSustained are the cells that run beside the pools under sustained load, which take
// the longest by far: half a minute, of which they wait for nearly all.
const besideSustained = "pools, " + Sustained

// beside names the cells that run at the same time, each in a process of its own, and is the
// share of two processors that each needs. Pools spend their time waiting for the store and
// refusing: beside each other their figures differ no more than from run to run. What is about
// processor time or memory runs alone, and so does naive, which does all within a second.
func beside(k ledger.Key) (group string, uses float64) {
	switch k.Load {
	case Brisk, Few, Many:
		return "", 0
	case Reuse, Parked, Looking:
		return "short ones", 0
	case Sustained:
		return besideSustained, .03
	}
	switch {
	case k.Setup == Real && k.Pattern == Naive:
		return "naive for real", 0
	case k.Pattern == Naive:
		return "", 0
	case k.Setup == Real:
		return "pools for real", .15
	}
	return "pools, " + Low + " and " + High, .03
}

// enoughFiles checks that as many connections may be open as clients send at the same time:
// those of three pools for real, under each load, or those of a service beside another one.
func (c Config) enoughFiles() error {
	const spare = 100 // for what a process needs besides
	most := max(spare+3*(c.job(ledger.Key{Load: Low}, 0).Clients+c.job(ledger.Key{Load: High}, 0).Clients), spare+manyClients+MaxConnections)
	if c.Postgres != "" { // a service has a connection to its client, and one to the database
		most = max(most, spare+2*manyClients, spare+c.Users+someConnections)
	}
	if most > usage.OpenFiles() {
		return fmt.Errorf("the clients need %d open files and this session may have %d: raise it with ulimit -n %d, or take fewer --clients and --users", most, usage.OpenFiles(), most)
	}
	return nil
}

// spec is a contestant that this program plays, under the memory cap.
func (c Config) spec(role string, input any) contestant.Spec {
	return contestant.Spec{Role: role, Input: input, MemoryCap: uint64(c.MemoryCap) << 20}
}

// patient is a contestant that needs the patient API.
func (c Config) patient(role string, input any) contestant.Spec {
	spec := c.spec(role, input)
	spec.Program = program
	return spec
}

// run runs a contestant that loads itself. Of one that is killed only the settings are known.
func (c Config) run(ctx context.Context, spec contestant.Spec, params map[string]any) (run results.Run, err error) {
	exit, err := contestant.Run(ctx, spec, &run)
	if exit.Killed != "" {
		run.Killed, run.Params = exit.Killed, params
	}
	run.Process.PeakRSS = max(run.Process.PeakRSS, exit.PeakRSS)
	return run, err
}
