package patterns

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
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
	Brisk     = "above 1,000/s" // H10: every request is admitted, and there are many
	Reuse     = "reuse"         // H9: a fast store, so that objects are reused often
	Parked    = "parked"        // H11: goroutines that only wait
)

// The contestants: the published patterns and ours, and what H4 and H9 are about.
const (
	Naive      = specimen.Naive
	WorkerPool = specimen.WorkerPool
	Optimized  = specimen.Optimized
	Limiter    = "limiter" // only ours

	Warm      = specimen.Warm // only of the published shape: the receiver gives every reply back
	Uncleared = "uncleared"   // owned correctly, never cleared
)

var contestants = []string{Naive, WorkerPool, Optimized, Limiter}

// Config is what a user may set.
type Config struct {
	Contestant []string      `placeholder:"NAME" help:"Only these patterns: naive, workerpool, optimized, limiter. Claims that need another one stay open."`
	Requests   int           `group:"Size" default:"0" quick:"1000" help:"Requests of every load, also of those that are part of one claim only; 0: each load's own number."`
	Clients    int           `group:"Size" default:"0" help:"Clients of every load; 0: each load's own number."`
	Workers    int           `group:"Size" default:"0" help:"Workers of the pools and slots of the limiter; 0: 20, and 100 where the load is above 1,000 requests a second."`
	Sustained  int           `group:"Size" default:"2500" full:"50000" help:"Requests of our own patterns under sustained load. The published shape has all of its 50,000 always."`
	QueueSize  int           `group:"Size" default:"100" help:"Requests that may wait for a worker; 0: none."`
	QueueWait  time.Duration `group:"Size" default:"100ms" help:"How long a request waits for room in a full queue. For real, and by the limiter, it is refused at once."`
	MinLatency time.Duration `group:"Size" default:"50ms" help:"Least time the store takes."`
	MaxLatency time.Duration `group:"Size" default:"100ms" help:"Most time the store takes."`
	ErrorRate  float64       `group:"Size" default:"0.05" help:"Share of store calls that fail."`
	Patients   int           `group:"Size" default:"100000" quick:"1000" help:"Patients in the database, which is made on first use and kept in your cache folder."`
	MemoryCap  int           `default:"2048" placeholder:"MIB" help:"A contestant that needs more memory than that is killed, which is a result; 0 sets no limit."`
}

const maxPatients = 999_999 // that an id can tell apart

func (c Config) check() error {
	for _, n := range []struct {
		flag  string
		value int
	}{{"requests", c.Requests}, {"clients", c.Clients}, {"workers", c.Workers}, {"queue-size", c.QueueSize}, {"memory-cap", c.MemoryCap}} {
		if n.value < 0 {
			return fmt.Errorf("%s is %d: it cannot be negative", n.flag, n.value)
		}
	}
	switch {
	case c.Sustained < 1:
		return fmt.Errorf("sustained is %d: want at least 1", c.Sustained)
	case c.QueueWait < 0 || c.MinLatency < 0 || c.MaxLatency < 0:
		return errors.New("queue-wait, min-latency and max-latency cannot be negative")
	case c.MinLatency > c.MaxLatency:
		return fmt.Errorf("min-latency %v is above max-latency %v: swap them, or raise max-latency", c.MinLatency, c.MaxLatency)
	case !(c.ErrorRate >= 0 && c.ErrorRate < 1):
		return fmt.Errorf("error-rate is %v: want a share from 0 to below 1, such as 0.05", c.ErrorRate)
	case c.Patients < 1 || c.Patients > maxPatients:
		return fmt.Errorf("patients is %d: want 1 to %d", c.Patients, maxPatients)
	}
	return experiment.Known("contestant", c.Contestant, contestants)
}

// job is the load of a cell: a closed loop of the published size, unless the user says
// otherwise. How many requests a client has decides how many are refused.
func (c Config) job(k ledger.Key, trial experiment.Trial) Job {
	j := Job{
		Pattern: k.Pattern, Workers: 20, QueueSize: c.QueueSize, QueueWait: c.QueueWait, MinLatency: c.MinLatency, MaxLatency: c.MaxLatency,
		ErrorRate: c.ErrorRate, Patients: c.Patients, Seed: trial.Seed, WarmUp: k.Load == Brisk || k.Pattern == Warm,
	}
	switch k.Load {
	case Low:
		j.Requests, j.Clients = 1_000, 100
	case High:
		j.Requests, j.Clients = 10_000, 1_000
	case Sustained:
		j.Requests, j.Clients = 50_000, 500
		if k.Setup != Shape {
			j.Requests = c.Sustained
		}
	case Brisk:
		j.Requests, j.Clients, j.Workers = 3_000, 120, 100
	case Reuse:
		j.Requests, j.Clients = 5_000, 100
	case Parked:
		j.Clients = 10_000
		return j // no load: the user's sizes are of others
	}
	if k.Setup == Real {
		j.QueueWait = 0
	}
	or := func(own *int, given int) {
		if given > 0 {
			*own = given
		}
	}
	or(&j.Requests, c.Requests)
	or(&j.Clients, c.Clients)
	or(&j.Workers, c.Workers)
	return j
}

// expect is roughly how long a contestant needs.
func (c Config) expect(k ledger.Key) time.Duration {
	const around = 300 * time.Millisecond // its process
	j := c.job(k, experiment.Trial{})
	mean := float64(c.MinLatency+c.MaxLatency) / 2
	quota := float64(j.Requests) / float64(j.Clients)
	switch {
	case k.Load == Reuse || k.Load == Parked:
		return around
	case k.Pattern == Naive:
		return around + time.Duration(quota*1.1*mean) + time.Duration(j.Requests)*20*time.Microsecond
	}
	fit := min(j.Clients, j.Workers+j.QueueSize)
	if j.QueueWait > 0 && fit < j.Clients && quota > 20 && k.Pattern != Limiter {
		quota *= 0.75 // the others take some of the turns
	}
	if j.WarmUp {
		quota += 2
	}
	return around + time.Duration(quota*float64(fit)/float64(j.Workers)*mean)
}

// keys are the cells. Claims that compare times need a twin of one side.
func (c Config) keys() (out []ledger.Key) {
	add := func(setup, load string, patterns ...string) {
		for _, p := range patterns {
			listed := p
			if p == Warm || p == Uncleared {
				listed = Optimized
			}
			if len(c.Contestant) > 0 && !slices.Contains(c.Contestant, listed) {
				continue
			}
			k := ledger.Key{Setup: setup, Load: load, Pattern: p}
			out = append(out, k)
			if p == WorkerPool && (load == Brisk || setup == Shape && load != High) {
				k.Twin = true
				out = append(out, k)
			}
		}
	}
	for _, load := range []string{Low, High, Sustained} {
		add(Shape, load, Naive, WorkerPool, Optimized, Warm)
		add(Process, load, contestants...)
		add(Real, load, contestants...)
	}
	add(Shape, Brisk, WorkerPool, Optimized, Warm)
	add(Process, Brisk, WorkerPool, Optimized)
	add(Real, Brisk, WorkerPool, Optimized)
	add(Shape, Reuse, Uncleared, Warm)
	add(Process, Reuse, Optimized)
	add(Shape, Parked, Naive)
	return out
}

// beside names the cells that run at the same time, each in a process of its own. Pools
// spend their time waiting for the store and refusing: beside each other their figures
// differ no more than from run to run. What naive does falls into one second, in which the
// others start, so under the short loads that of the published shape runs alone.
func beside(k ledger.Key) string {
	switch {
	case k.Load == Reuse || k.Load == Parked:
		return "short ones"
	case k.Pattern == Naive && k.Setup == Shape && k.Load == Sustained, k.Pattern != Naive && (k.Setup != Real || k.Load == Low):
		return "pools, " + k.Load
	case k.Pattern != Naive:
		return "pools for real, " + k.Load
	case k.Setup == Shape || k.Load == High:
		return ""
	}
	return "naive, " + k.Load
}
