// Package patterns is experiment H: a patient API under three published concurrency
// patterns, in the published shape; beside it ours, in process and for real.
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

const help = `A patient is looked up by id, in a store that takes 50 to 100 ms and fails 5 % of the time. It is done under the published patterns (naive: a goroutine for every request; workerpool: 20 workers and a queue of 100, refusing when full; optimized: the same with reused response objects) and by a limiter of ours. Three set-ups are measured. The published shape is the published code, rebuilt, at its published size, and decides the claims. Ours stand beside it: in process, as function calls over a simulated store, and for real, over HTTP to a server with a SQLite file that has the same latency and errors added and refuses at once.

Clients send back to back, each its share of the requests: 1,000 by 100 clients (low), 10,000 by 1,000 (high), 50,000 by 500 (sustained). Other sizes give other answers, so a claim about the sizes stays open when others were run. Published pools of several sizes and queues are compared over stores that have a capacity (a model, SQLite, PostgreSQL if there is one, look-ups that compute), and the source's three stories of a service without a bound are played: 10,000 users at a database of 100 connections, a query that suddenly takes 30 s, and a naive service beside another one on the same database. With --postgres they are played on a real one, over HTTP, and beside the published patterns by a service that is told no number; otherwise on a model of it. With --sweep, throughput, goodput and p99 are also measured against workers, queue and clients.

Every contestant runs in a process of its own under a memory cap. Refusals, errors and successes are never mixed.`

// program plays every role that needs the patient API.
const program = "patient"

// virtual plays the role whose clock is virtual: the command is to link no testing.
const virtual = "virtual"

// The roles of its contestants. Each has a Job as its input.
const (
	RoleCall     = "patterns-call"
	RoleServer   = "patterns-server"
	RoleDatabase = "patterns-database" // of a number of patients: the path of its file
	RoleSizes    = "patterns-look-ups" // has a Sizing as its input
	RoleVirtual  = "patterns-virtual"  // of program virtual, likewise

	rolePublished = "patterns-published"
	roleComputing = "patterns-computing"
	roleScenario  = "patterns-scenario"
	roleStalled   = "patterns-stalled"
	roleFilled    = "patterns-filled"
)

// The set-ups.
const (
	Shape   = "published shape" // the published code itself, rebuilt; always at the published size
	Process = "in process"      // our patterns in its place: function calls, a simulated store, a wait for queue room
	Real    = "for real"        // HTTP on loopback to a server in its own process, SQLite, refused at once
)

// The loads.
const (
	Low       = "low"
	High      = "high"
	Sustained = "sustained"
	Brisk     = "above 1,000/s" // H10: a fast store, and every request is admitted
	Reuse     = "reuse"         // H9: a fast store, so that objects are reused often
	Parked    = "parked"        // H11: goroutines that only wait
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
	Sustained  int           `group:"Size" default:"2500" full:"50000" least:"1" help:"Requests of our own patterns under sustained load. The published shape has all of its 50,000 always."`
	QueueSize  int           `group:"Size" default:"100" least:"0" help:"Requests that may wait for a worker; 0: none."`
	QueueWait  time.Duration `group:"Size" default:"100ms" least:"0s" help:"How long a request waits for room in a full queue. For real, and by the limiter, it is refused at once."`
	MinLatency time.Duration `group:"Size" default:"50ms" least:"0s" help:"Least time the store takes."`
	MaxLatency time.Duration `group:"Size" default:"100ms" help:"Most time the store takes."`
	ErrorRate  float64       `group:"Size" default:"0.05" least:"0" most:"0.999" help:"Share of store calls that fail."`
	SizeTime   time.Duration `group:"Size" default:"6s" quick:"1s" least:"60ms" help:"How long a pool of each size is loaded: a third of it, in virtual time, where look-ups only wait, and a hundredth where the pools keep the processors busy and take turns."`
	Users      int           `group:"Size" default:"10000" quick:"1000" least:"1" most:"100000" help:"Users that ask a database of 100 connections at once."`
	Watch      time.Duration `group:"Size" default:"4s" quick:"1s" full:"30s" least:"500ms" help:"How long a service is watched whose query takes 30 s, and one beside a naive neighbour."`
	Calm       time.Duration `group:"Size" default:"4s" quick:"1s" least:"100ms" help:"How long all is well on the real database before something happens; an adaptive service has two or three times as long to find out how much it can do."`
	Stalled    time.Duration `group:"Size" default:"30s" quick:"6s" least:"1s" help:"How long a table of the real database stays locked."`
	Beside     time.Duration `group:"Size" default:"5s" quick:"2s" least:"1s" help:"How long a service beside another one on the real database is watched."`
	Sweep      bool          `help:"Also measure throughput, goodput and p99 against 10 to 500 workers, 0 to 5,000 queue places and 10 to 1,000 clients. No claim needs it."`
	Patients   int           `group:"Size" default:"100000" quick:"1000" least:"1" most:"999999" help:"Patients in the database, which is made on first use and kept in your cache folder."`
	Scenario   []string      `placeholder:"NAME" help:"Only these of the scenarios on the real database, and nothing else: crowd (H6), stall (H7), neighbours (H8). All other claims stay open."`
	MemoryCap  int           `default:"2048" least:"0" placeholder:"MIB" help:"A contestant that needs more memory than that is killed, which is a result; 0 sets no limit."`

	Postgres postgres.Server `env:"SPILLWAY_POSTGRES" placeholder:"URL" help:"A PostgreSQL on which H5 to H8 are measured, as its superuser: postgres://user@host:port/postgres, with a password only in the environment. The experiment makes a database and a role with 100 connections for each measurement, and drops them. Without it a model of a database stands in."`
}

// Roles are the roles that need no patient API.
func Roles() map[string]contestant.Role {
	roles := demonstrations.Roles()
	roles[rolePublished] = contestant.Func(published)
	roles[roleComputing] = contestant.Func(SimulatedPools)
	roles[roleScenario] = contestant.Func(played)
	roles[roleStalled] = contestant.Server(stalledServer)
	roles[roleFilled] = contestant.Func(filled)
	return roles
}

// Plan is what a session with these settings runs.
func Plan(c Config) (experiment.Plan, error) {
	if c.MinLatency > c.MaxLatency {
		return experiment.Plan{}, fmt.Errorf("min-latency %v is above max-latency %v: swap them, or raise max-latency", c.MinLatency, c.MaxLatency)
	}
	if err := cmp.Or(experiment.Known("contestant", c.Contestant, contestants), c.checkScenarios(), c.enoughFiles()); err != nil {
		return experiment.Plan{}, err
	}
	p := experiment.Plan{Programs: []contestant.Spec{{Program: program, Role: RoleServer}}}
	c.addReal(&p)
	if len(c.Scenario) > 0 {
		return p, nil
	}
	p.Programs = append(p.Programs, contestant.Spec{Program: virtual, Role: RoleVirtual})
	p.Demos = demonstrations.Demos()
	var database string
	prepare := p.Prepare
	p.Prepare = func(ctx context.Context) error { // makes it once, or finds that of an earlier session
		_, err := contestant.Run(ctx, contestant.Spec{Program: program, Role: RoleDatabase, Input: c.Patients}, &database)
		if err == nil && prepare != nil {
			err = prepare(ctx)
		}
		return err
	}
	for _, s := range c.series() {
		p.Groups = append(p.Groups, c.group(s, &database))
	}
	p.Cells = append(p.Cells, c.scenes(false)...)
	c.addMemory(&p)
	for _, k := range c.keys() {
		p.Cells = append(p.Cells, experiment.Cell{
			Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Beside: c.beside(k), Expect: c.expect(k),
			Uses: uses(k),
			Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
				j := c.job(k, t.Seed)
				switch j.Database = database; k.Setup {
				case Real:
					return j.serveAndLoad(ctx)
				case Process:
					return c.run(ctx, c.patient(RoleCall, j), j.Params())
				}
				return c.run(ctx, c.spec(rolePublished, j), j.Params())
			},
		})
	}
	return p, nil
}

// job is what a cell runs: the published size, unless the user says otherwise. How many
// requests a client has decides how many are refused.
func (c Config) job(k ledger.Key, seed uint64) Job {
	sizes := map[string][3]int{ // requests, clients, workers
		Low: {1_000, 100, 20}, High: {10_000, 1_000, 20}, Sustained: {50_000, 500, 20},
		Brisk: {10_000, 120, 20}, Reuse: {5_000, 100, 20}, Parked: {1, 10_000, 20},
	}[k.Load]
	if k.Load == Sustained && k.Setup != Shape {
		sizes[0] = c.Sustained
	}
	j := Job{Config: c, Load: k.Load, Pattern: k.Pattern, Seed: seed, WarmUp: k.Load == Brisk || k.Pattern == Warm}
	if k.Setup == Real {
		j.QueueWait = 0
	}
	switch k.Load {
	case Reuse:
		j.MinLatency, j.MaxLatency, j.ErrorRate = 0, 0, 0
	case Brisk:
		j.MinLatency, j.MaxLatency = 0, time.Millisecond
	case Parked: // goroutines, which no user's size is about
		j.Clients = 0
	}
	j.Requests, j.Clients, j.Workers = cmp.Or(j.Requests, sizes[0]), cmp.Or(j.Clients, sizes[1]), cmp.Or(j.Workers, sizes[2])
	return j
}

// process is what it takes to start one and to end it.
const process = 300 * time.Millisecond

// expect is roughly how long a contestant needs.
func (c Config) expect(k ledger.Key) time.Duration {
	j := c.job(k, 0)
	quota, turns := float64(j.Requests)/float64(j.Clients), 1.1
	if j.WarmUp {
		quota++
	}
	if k.Pattern != Naive {
		turns = float64(min(j.Clients, j.Workers+j.QueueSize)) / float64(j.Workers)
		if j.QueueWait > 0 && quota > 20 {
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
			if !c.wants(p) {
				continue
			}
			out = append(out, ledger.Key{Setup: setup, Load: load, Pattern: p})
			if p == WorkerPool && (load == Brisk || setup == Shape) {
				out = append(out, ledger.Key{Setup: setup, Load: load, Pattern: p, Twin: true})
			}
		}
	}
	for _, load := range []string{Low, High, Sustained} {
		add(Shape, load, Naive, WorkerPool, Optimized, Warm)
		add(Process, load, contestants...)
		add(Real, load, contestants...)
	}
	add(Shape, Brisk, WorkerPool, Optimized, Warm)
	add(Shape, Reuse, Uncleared, Warm)
	add(Process, Reuse, Optimized)
	add(Shape, Parked, Naive)
	return out
}

// wants reports whether the user chose the contestant, or the one that it is a form of.
func (c Config) wants(pattern string) bool {
	form := map[string]string{
		Warm: Optimized, Uncleared: Optimized, Queueing: Naive, Ours: WorkerPool,
		Unprotected: Naive, Unqueued: Naive, Pooled: WorkerPool, Told: Limiter, Adaptive: Limiter,
	}[pattern]
	return experiment.Wanted(c.Contestant, cmp.Or(form, pattern))
}

// besideSustained are the cells that run beside the pools under sustained load, which take
// the longest by far: half a minute, of which they wait for nearly all.
const besideSustained = "pools, " + Sustained

// beside names the cells that run at the same time, each in a process of its own. Pools
// spend their time waiting for the store and refusing: beside each other their figures
// differ no more than from run to run. What naive does falls into one second, in which the
// others start, so under the short loads that of the published shape runs alone.
func (c Config) beside(k ledger.Key) string {
	switch naive := k.Pattern == Naive; {
	case k.Load == Brisk: // processor time and memory
		return ""
	case k.Load == Reuse || k.Load == Parked:
		return "short ones"
	case naive && k.Load != Sustained && k.Setup == Shape, naive && k.Load == High && k.Setup == Real:
		return ""
	case naive && k.Setup != Shape:
		return "naive of ours"
	case k.Setup == Shape && k.Load == Sustained || k.Load == Sustained && c.Sustained > 5_000:
		return besideSustained
	case k.Setup == Real:
		return "pools for real"
	}
	return "pools, " + Low + " and " + High
}

// uses is the share of two processors that a pool needs, with its clients. What naive does
// falls into one second, and runs alone.
func uses(k ledger.Key) float64 {
	switch {
	case k.Pattern == Naive && k.Load != Sustained || k.Load == Reuse || k.Load == Brisk:
		return 0
	case k.Setup != Real:
		return .03
	case k.Load == Low || k.Load == Sustained:
		return .08
	}
	return .18
}

// enoughFiles checks that as many connections may be open as clients send at the same
// time: those of three pools for real, under each load.
func (c Config) enoughFiles() error {
	const spare = 100 // for what a process needs besides
	most := spare
	for _, load := range []string{Low, High, Sustained} {
		most += 3 * c.job(ledger.Key{Setup: Real, Load: load}, 0).Clients
	}
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
