package patterns

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/usage"
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
	for flag, n := range map[string]int{"requests": c.Requests, "clients": c.Clients, "workers": c.Workers, "queue-size": c.QueueSize, "memory-cap": c.MemoryCap} {
		if n < 0 {
			return fmt.Errorf("%s is %d: it cannot be negative", flag, n)
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
	return cmp.Or(experiment.Known("contestant", c.Contestant, contestants), c.enoughFiles())
}

// job is what a cell runs: the published size, unless the user says otherwise. How many
// requests a client has decides how many are refused.
func (c Config) job(k ledger.Key, seed uint64) Job {
	sizes := map[string][3]int{ // requests, clients, workers
		Low: {1_000, 100, 20}, High: {10_000, 1_000, 20}, Sustained: {50_000, 500, 20},
		Brisk: {3_000, 120, 100}, Reuse: {5_000, 100, 20}, Parked: {1, 10_000, 20},
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
	case Parked: // goroutines, which no user's size is about
		j.Clients = 0
	}
	j.Requests, j.Clients, j.Workers = cmp.Or(j.Requests, sizes[0]), cmp.Or(j.Clients, sizes[1]), cmp.Or(j.Workers, sizes[2])
	return j
}

// expect is roughly how long a contestant needs.
func (c Config) expect(k ledger.Key) time.Duration {
	const process = 300 * time.Millisecond
	j := c.job(k, 0)
	quota, turns := float64(j.Requests)/float64(j.Clients), 1.1
	if j.WarmUp {
		quota++
	}
	if k.Pattern != Naive {
		turns = float64(min(j.Clients, j.Workers+j.QueueSize)) / float64(j.Workers)
	}
	if k.Pattern != Naive && j.QueueWait > 0 && quota > 20 {
		turns *= 0.7 // the clients that are refused take some of them
	}
	if k.Load == Parked {
		turns = 0
	}
	return process + time.Duration(quota*turns*float64(j.MinLatency+j.MaxLatency)/2)
}

// keys are the cells. Claims that compare times need a twin of one side.
func (c Config) keys() (out []ledger.Key) {
	add := func(setup, load string, patterns ...string) {
		for _, p := range patterns {
			listed := map[string]string{Warm: Optimized, Uncleared: Optimized}[p]
			if len(c.Contestant) > 0 && !slices.Contains(c.Contestant, cmp.Or(listed, p)) {
				continue
			}
			out = append(out, ledger.Key{Setup: setup, Load: load, Pattern: p})
			if p == WorkerPool && (load == Brisk || setup == Shape && load != High) {
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
func (c Config) beside(k ledger.Key) string {
	switch naive := k.Pattern == Naive; {
	case k.Load == Reuse || k.Load == Parked:
		return "short ones"
	case naive && (k.Setup == Shape && k.Load != Sustained || k.Load == High):
		return ""
	case naive && k.Setup != Shape:
		return "naive of ours, low and sustained"
	case k.Setup != Real || k.Load == Low:
		return "pools, " + k.Load
	case k.Load == Sustained && c.Sustained <= 5_000: // few requests, over soon
		return "pools, " + Low
	}
	return "pools for real, " + k.Load
}

// enoughFiles checks that as many connections may be open as clients send at the same
// time: those of three pools for real.
func (c Config) enoughFiles() error {
	const spare = 100 // for what a process needs besides
	if most := spare + 3*c.job(ledger.Key{Setup: Real, Load: High}, 0).Clients; most > usage.OpenFiles() {
		return fmt.Errorf("the clients need %d open files and this session may have %d: raise it with ulimit -n %d, or take fewer --clients", most, usage.OpenFiles(), most)
	}
	return nil
}
