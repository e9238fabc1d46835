package app

import (
	"os"
	"time"

	"github.com/alecthomas/kong"

	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/front"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/limiter"
)

// Command is the service's command line. Its zero value is not usable: let kong
// fill it, or take Default.
type Command struct {
	Pattern  PatternFlags  `embed:"" group:"How requests are run:"`
	Deadline DeadlineFlags `embed:"" group:"How long requests may take:"`
	Listen   ListenFlags   `embed:"" group:"Listeners:"`
	TLS      TLSFlags      `embed:"" prefix:"tls-" group:"Listeners:"`
	Admin    AdminFlags    `embed:"" prefix:"admin-" group:"Listeners:"`
	Auth     AuthFlags     `embed:"" group:"Callers:"`
	Audit    AuditFlags    `embed:"" group:"Audit:"`
	Store    StoreFlags    `embed:"" group:"Patients:"`
	Cache    CacheFlags    `embed:"" group:"Clinicians:"`
	FHIR     FHIRFlags     `embed:"" group:"FHIR:"`
	Exports  ExportFlags   `embed:"" group:"Bulk exports:"`
	Faults   FaultFlags    `embed:"" group:"A database far away:"`
	Traces   TraceFlags    `embed:"" group:"Traces:"`
	Shutdown ShutdownFlags `embed:"" group:"Stopping:"`

	Engine Engine `kong:"-"` // opens the queue of exports; nil: there are none

	JSON bool `name:"json" help:"For programs: one line of JSON on stdout when ready, and a report as JSON at the end." env:"SPILLWAY_JSON"`
}

// Help is for kong, which shows it between the usage and the flags.
func (Command) Help() string {
	return `Patients over HTTP, also as FHIR R4, for callers with a token and with every access on record: from a SQLite file that is made on first use, with latency and errors added like those of a database far away, or from a PostgreSQL as it is. It prints a curl command that reads a patient. Ctrl-C stops it gracefully and reports what it did.

Examples:
  patientapi
  patientapi --pattern naive --store simulated --min-latency 0s --max-latency 0s --error-rate 0
  export SPILLWAY_LOAD_HEADER="Authorization: Bearer $(patientapi token --role clinician)"
  curl -H "$SPILLWAY_LOAD_HEADER" http://localhost:8080/api/v1/patients/P000042
  spillway load --clients 200 --duration 10s http://localhost:8080/api/v1/patients/P000042

Everybody as files, by a job that goes on after a restart:
  patientapi --exports /var/lib/patientapi/exports
  export JOB="Authorization: Bearer $(patientapi token --role export-job)"
  curl -i -H "$JOB" -H "Prefer: respond-async" 'http://localhost:8080/fhir/Patient/$export'
  curl -i -H "$JOB" http://localhost:8080/fhir/export/...     the URL in Content-Location: 202 with X-Progress, then 200 with the URLs of the files

"spillway serve" is the same as "patientapi".

Exit codes: 0 stopped and all work in progress was finished; 1 something was left undone; 2 bad input, or the address is in use.`
}

// PatternFlags say how requests are run.
type PatternFlags struct {
	Name      string        `name:"pattern" help:"How requests are run: adaptive (a goroutine each, as many as a limiter finds out in front of the service), limiter (the same with --workers, behind it), workerpool, optimized (workerpool with reused responses) or naive (a goroutine each, no bound)." default:"adaptive" env:"SPILLWAY_PATTERN"`
	Mode      limiter.Mode  `help:"Whether refusals are enforced: enforce, dryrun (all is decided and counted, nothing refused) or off (adaptive, limiter)." default:"enforce" env:"SPILLWAY_MODE"`
	SlowStart time.Duration `help:"How long a new process takes to run as many requests as it can, from the first one on (adaptive)." default:"2s" env:"SPILLWAY_SLOW_START"`
	Workers   int           `help:"How many lookups run at one time (workerpool, optimized, limiter)." default:"20" env:"SPILLWAY_WORKERS"`
	QueueSize int           `help:"How many requests wait for their turn; 0: none (workerpool, optimized, limiter)." default:"100" env:"SPILLWAY_QUEUE_SIZE"`
	QueueWait time.Duration `help:"How long a request waits for room in a full queue; 0: refuse at once (workerpool, optimized)." default:"0s" env:"SPILLWAY_QUEUE_WAIT"`
}

// DeadlineFlags say how long requests may take.
type DeadlineFlags struct {
	Timeout  time.Duration `help:"Bound of each request once it is admitted; 0: none." default:"30s" env:"SPILLWAY_TIMEOUT"`
	Critical time.Duration `name:"critical-deadline" help:"Bound of reading one patient by id, its wait included; 0: none (adaptive)." default:"2s" env:"SPILLWAY_CRITICAL_DEADLINE"`
	Normal   time.Duration `name:"normal-deadline" help:"Bound of searches, their wait included; 0: none (adaptive)." default:"5s" env:"SPILLWAY_NORMAL_DEADLINE"`
	Bulk     time.Duration `name:"bulk-deadline" help:"Bound of batches, their wait included; 0: none (adaptive)." default:"30s" env:"SPILLWAY_BULK_DEADLINE"`
}

// classes returns the deadlines as the API has them.
func (d DeadlineFlags) classes() front.Deadlines {
	return front.Deadlines{Critical: d.Critical, Normal: d.Normal, Bulk: d.Bulk}
}

// ListenFlags say where clients connect.
type ListenFlags struct {
	Addr           string `help:"Address to listen on; port 0 picks a free one." default:"127.0.0.1:8080" env:"SPILLWAY_ADDR"`
	MaxConnections int    `help:"How many connections of clients are open at one time; more wait to be accepted." default:"10000" env:"SPILLWAY_MAX_CONNECTIONS"`
}

// AdminFlags say where those who run the service connect.
type AdminFlags struct {
	Addr   string `help:"Address of the admin listener with /metrics, /health, /debug/spillway/ and pprof, such as 127.0.0.1:6060; off unless given." env:"SPILLWAY_ADMIN_ADDR" placeholder:"HOST:PORT"`
	Public bool   `help:"Allow an --admin-addr that other machines can reach. It asks for no credentials." env:"SPILLWAY_ADMIN_PUBLIC"`
}

// CacheFlags say what remembers clinicians beside the database.
type CacheFlags struct {
	URL          string        `name:"cache" help:"What remembers clinicians beside the database: memory, none, or a Redis as redis://[user@]host[:port][/database]. Only the environment may hold a password, as user:password@: other users of the machine see the command line." default:"memory" env:"SPILLWAY_CACHE"`
	PasswordFile string        `name:"cache-password-file" help:"File with the password of the Redis." env:"SPILLWAY_CACHE_PASSWORD_FILE" placeholder:"FILE"`
	TTL          time.Duration `name:"cache-ttl" help:"How long the cache remembers." default:"1m" env:"SPILLWAY_CACHE_TTL"`
	Timeout      time.Duration `name:"cache-timeout" help:"How long a request waits for the cache before it is answered without." default:"100ms" env:"SPILLWAY_CACHE_TIMEOUT"`
}

// FaultFlags say what is added to every call of the store. A PostgreSQL is left as it is
// unless they are given.
type FaultFlags struct {
	MinLatency time.Duration `help:"Least latency added to each store call; none to a PostgreSQL unless it is given." default:"50ms" env:"SPILLWAY_MIN_LATENCY"`
	MaxLatency time.Duration `help:"Most latency added to each store call; likewise." default:"100ms" env:"SPILLWAY_MAX_LATENCY"`
	ErrorRate  float64       `help:"Share of store calls that fail, 0 to 1; likewise." default:"0.05" env:"SPILLWAY_ERROR_RATE"`
}

// AfterApply adds nothing to a PostgreSQL that was not asked for.
func (c *Command) AfterApply(k *kong.Context) error {
	if !isPostgres(c.Store.Kind) {
		return nil
	}
	given := map[string]bool{}
	for _, p := range k.Path {
		if p.Flag != nil {
			given[p.Flag.Name] = true
		}
	}
	for _, f := range k.Flags() {
		for _, name := range f.Envs {
			if _, set := os.LookupEnv(name); set {
				given[f.Name] = true
			}
		}
	}
	if !given["min-latency"] {
		c.Faults.MinLatency = 0
	}
	if !given["max-latency"] {
		c.Faults.MaxLatency = c.Faults.MinLatency
	}
	if !given["error-rate"] {
		c.Faults.ErrorRate = 0
	}
	return nil
}

// ShutdownFlags say how long stopping may take.
type ShutdownFlags struct {
	Timeout    time.Duration `name:"shutdown-timeout" help:"How long to wait for requests under way when told to stop." default:"10s" env:"SPILLWAY_SHUTDOWN_TIMEOUT"`
	DrainDelay time.Duration `help:"How long to serve on after becoming not ready, for load balancers to notice." default:"0s" env:"SPILLWAY_DRAIN_DELAY"`
}

// Default returns the command with its default values.
func Default() Command {
	classes := front.DefaultDeadlines()
	return Command{
		Pattern:  PatternFlags{Name: patterns.Adaptive, SlowStart: 2 * time.Second, Workers: 20, QueueSize: 100},
		Deadline: DeadlineFlags{Timeout: 30 * time.Second, Critical: classes.Critical, Normal: classes.Normal, Bulk: classes.Bulk},
		Listen:   ListenFlags{Addr: "127.0.0.1:8080", MaxConnections: 10_000},
		Audit:    AuditFlags{Mode: auditOn},
		Store:    StoreFlags{Kind: sqliteStore, Patients: 100_000, Seed: 1},
		Cache:    CacheFlags{URL: "memory", TTL: time.Minute, Timeout: directory.DefaultCacheTimeout},
		Faults:   FaultFlags{MinLatency: 50 * time.Millisecond, MaxLatency: 100 * time.Millisecond, ErrorRate: 0.05},
		Exports:  ExportFlags{Queue: embeddedQueue, Keep: 24 * time.Hour},
		Traces:   TraceFlags{Sample: 1},
		Shutdown: ShutdownFlags{Timeout: 10 * time.Second},
	}
}
