package patterns

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	service "github.com/spillway-go/spillway/examples/patientapi/patterns"
)

// The set-ups. A run's Setup is one of them.
const (
	Published = "published"       // a function call in a child process, a simulated store, a wait for queue room
	Shape     = "published shape" // the published code itself, rebuilt; always at the published size
	Real      = "real"            // HTTP on loopback to a server in its own process, SQLite, refused at once
)

// The loads. A run's Load is one of them.
const (
	Low       = "low"
	High      = "high"
	Sustained = "sustained"
	Brisk     = "above 1,000/s" // H10: every request is admitted, and there are many
	Reuse     = "reuse"         // H9: a fast store, so that objects are reused often
	Parked    = "parked"        // H11: goroutines that only wait
)

// Contestants besides the four patterns of the service.
const (
	AsPrinted = "optimized, as printed" // H4: the published discipline of the response pool
	Uncleared = "uncleared"             // H9: owned correctly, never cleared
)

// Config is what a user may set. The zero value of a size means as published,
// scaled down.
type Config struct {
	Full       bool // the published number of requests
	Requests   int  // of every load; 0: the number of each load
	Clients    int
	Workers    int // 0: 20
	QueueSize  int // negative: 100; 0: no queue
	QueueWait  time.Duration
	MinLatency time.Duration
	MaxLatency time.Duration
	ErrorRate  float64
	Patterns   []string // nil: all four
	MemoryCap  uint64   // bytes for each contestant; 0: none
	Patients   int      // in the database
}

// Defaults is the published set-up.
func Defaults() Config {
	return Config{
		QueueSize: -1, QueueWait: 100 * time.Millisecond,
		MinLatency: 50 * time.Millisecond, MaxLatency: 100 * time.Millisecond, ErrorRate: 0.05,
		MemoryCap: 2 << 30, Patients: 100_000,
	}
}

func (c Config) check() (Config, error) {
	switch {
	case c.Requests < 0:
		return c, fmt.Errorf("requests is %d: it cannot be negative (leave it out for the load's own number)", c.Requests)
	case c.Clients < 0:
		return c, fmt.Errorf("clients is %d: it cannot be negative (leave it out for the load's own number)", c.Clients)
	case c.Workers < 0:
		return c, fmt.Errorf("workers is %d: want at least 1", c.Workers)
	case c.QueueWait < 0:
		return c, fmt.Errorf("queue-wait is %v: it cannot be negative", c.QueueWait)
	case c.MinLatency < 0 || c.MaxLatency < 0:
		return c, errors.New("min-latency and max-latency cannot be negative")
	case c.MinLatency > c.MaxLatency:
		return c, fmt.Errorf("min-latency %v is above max-latency %v: swap them, or raise max-latency", c.MinLatency, c.MaxLatency)
	case !(c.ErrorRate >= 0 && c.ErrorRate < 1):
		return c, fmt.Errorf("error-rate is %v: want a share from 0 to below 1, such as 0.05", c.ErrorRate)
	case c.Patients < 1 || c.Patients > patientapi.MaxPatients:
		return c, fmt.Errorf("patients is %d: want 1 to %d", c.Patients, patientapi.MaxPatients)
	}
	for i, name := range c.Patterns {
		if slices.Contains(c.Patterns[:i], name) {
			return c, fmt.Errorf("pattern %s is named twice: once is enough", name)
		}
		if !slices.Contains(contestants, name) {
			return c, fmt.Errorf("unknown pattern %q: want one of %s, or leave it out for all", name, strings.Join(contestants, ", "))
		}
	}
	if c.Patterns == nil {
		c.Patterns = slices.Clone(contestants)
	}
	if c.QueueSize < 0 {
		c.QueueSize = 100
	}
	return c, nil
}

// contestants are the patterns that the claims are about.
var contestants = []string{service.Naive, service.WorkerPool, service.Optimized, service.Limiter}

// load is one closed loop.
type load struct {
	name              string
	requests, clients int
	workers           int
}

const publishedWorkers = 20

// load returns the sizes of a load: the published ones, fewer requests unless
// Full, never fewer clients or workers, and the user's own on top. How many
// requests a client has decides how many are refused, so the loads are scaled
// differently:
//   - low and high are short, and the published shape is what the claims are about:
//     they keep all theirs;
//   - sustained needs some seventy a client where a refusal takes 100 ms and
//     clients take turns in the queue. Where it takes no time, for real and
//     always with the limiter, five per client give the same shares.
func (c Config) load(name, setup, pattern string) load {
	l := load{name: name, workers: publishedWorkers}
	scaled := func(full, part int) int {
		if c.Full {
			return full
		}
		return part
	}
	switch name {
	case Low:
		l.clients, l.requests = 100, 1_000
	case High:
		l.clients, l.requests = 1_000, 10_000
	case Sustained:
		l.clients, l.requests = 500, 50_000
		switch {
		case setup == Shape:
		case setup == Real || pattern == service.Limiter:
			l.requests = scaled(50_000, 2_500)
		default:
			l.requests = scaled(50_000, 35_000)
		}
	case Brisk:
		l.clients, l.requests, l.workers = 120, scaled(12_000, 3_000), 100
	case Reuse:
		l.clients, l.requests = 100, 5_000
	case Parked:
		l.clients, l.requests = 10_000, 10_000
	}
	if c.Requests > 0 {
		l.requests = c.Requests
	}
	if c.Clients > 0 {
		l.clients = c.Clients
	}
	if c.Workers > 0 {
		l.workers = c.Workers
	}
	return l
}

// scaled says how a session differs from the published sizes.
func (c Config) scaled() string {
	var parts []string
	if !c.Full && c.Requests == 0 {
		parts = append(parts, "fewer requests than published, never fewer clients or workers: low, high and the published shape all of theirs, "+
			"sustained 35,000 of 50,000 as published, and 2,500 where refusals take no time (for real, limiter); --full runs them all")
	}
	d := Defaults()
	own := func(set bool, format string, args ...any) {
		if set {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	own(c.Requests > 0, "%d requests in every load", c.Requests)
	own(c.Clients > 0, "%d clients in every load", c.Clients)
	own(c.Workers > 0, "%d workers instead of %d", c.Workers, publishedWorkers)
	own(c.QueueSize >= 0 && c.QueueSize != 100, "a queue of %d instead of 100", c.QueueSize)
	own(c.QueueWait != d.QueueWait, "a wait of %v for queue room instead of %v", c.QueueWait, d.QueueWait)
	own(c.MinLatency != d.MinLatency || c.MaxLatency != d.MaxLatency, "a store of %v to %v instead of %v to %v",
		c.MinLatency, c.MaxLatency, d.MinLatency, d.MaxLatency)
	own(c.ErrorRate != d.ErrorRate, "%.3g %% errors instead of 5 %%", 100*c.ErrorRate)
	own(len(c.Patterns) < len(contestants), "%s only", strings.Join(c.Patterns, ", "))
	return strings.Join(parts, "; ")
}

// expect is roughly how long a contestant needs under a load.
func (c Config) expect(l load, pattern string) time.Duration {
	mean := (c.MinLatency + c.MaxLatency) / 2
	quota := float64(l.requests) / float64(l.clients)
	switch {
	case l.name == Reuse || l.name == Parked:
		return 100 * time.Millisecond
	case pattern == service.Naive:
		return time.Duration(quota*1.1*float64(mean)) + time.Duration(l.requests)*20*time.Microsecond
	}
	fit := min(l.clients, l.workers+c.QueueSize)
	if l.name == Sustained && fit < l.clients && pattern != service.Limiter {
		quota *= 0.75 // the others take some of the turns
	}
	return time.Duration(quota * float64(fit) / float64(l.workers) * float64(mean))
}
