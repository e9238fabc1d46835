package pools

import "time"

// The contestants.
const (
	Channel   = "channel"   // workers that range over a buffered channel
	Semaphore = "semaphore" // golang.org/x/sync/semaphore and a goroutine per job
	Errgroup  = "errgroup"  // golang.org/x/sync/errgroup with SetLimit
	Ants      = "ants"      // github.com/panjf2000/ants/v2
	Pond      = "pond"      // github.com/alitto/pond/v2
	Conc      = "conc"      // github.com/sourcegraph/conc/pool
	Gammazero = "gammazero" // github.com/gammazero/workerpool
	Tunny     = "tunny"     // github.com/Jeffail/tunny
	Spillway  = "spillway"  // workerpool
)

// What contestants can do. Tunny only calls; gammazero and conc cannot refuse; some
// start a goroutine for a job and queue none.
var (
	Names      = []string{Spillway, Channel, Semaphore, Errgroup, Ants, Pond, Conc, Gammazero, Tunny}
	Submitters = []string{Spillway, Channel, Semaphore, Errgroup, Ants, Pond, Conc, Gammazero}
	Refusers   = []string{Spillway, Channel, Semaphore, Errgroup, Ants, Pond}
	Callers    = []string{Spillway, Channel, Tunny, Pond}
	Queuers    = []string{Spillway, Channel, Pond, Gammazero}
	flooded    = []string{Spillway, Channel, Ants, Pond, Gammazero}
)

// Idle is how long workers stay without a job, in the pools that retire them.
const Idle = 250 * time.Millisecond

// Roles of the program, with what they take and return.
const (
	RoleBout   = "pools-bout"   // Bout, readings by entry and round
	RoleMemory = "pools-memory" // Footprint, figures
	RoleBurst  = "pools-burst"  // Flood, figures
	RoleSizing = "pools-sizing" // Sized, a run for each phase
)

// The operations that a bout measures.
const (
	Submitting = "submit" // jobs handed over
	Refusing   = "refuse" // submissions refused by a full pool
	Calling    = "call"   // results waited for
)

// Bout is several contestants with the same task, in one process and in turns.
type Bout struct {
	What      string
	Work      time.Duration // of each job; 0: none
	Producers int
	Entries   []Entry
	Rounds    int           // each runs every entry once, in a new order
	Time      time.Duration // of each measurement
	Buffer    int
	Seed      uint64
}

// Entry is a contestant with a number of workers.
type Entry struct {
	Contestant string
	Workers    int
}

// Footprint asks for the memory, in heap and stacks, of an idle worker ("worker_bytes")
// and of a job that no worker has taken ("job_bytes").
type Footprint struct {
	Contestant    string
	Workers, Jobs int
}

// Flood is many jobs that wait, all at once. It takes "finish" of the ideal time,
// "cpu_seconds", "peak_rss" and "peak_goroutines", and "left" are the workers still
// there after the idle timeout.
type Flood struct {
	Contestant            string
	Jobs, Workers, Buffer int
	Work                  time.Duration
}

// Ideal is how long it takes if every worker is always busy.
func (f Flood) Ideal() time.Duration {
	return time.Duration((f.Jobs+f.Workers-1)/f.Workers) * f.Work
}

// Sized is one pool under work that changes once. Jobs arrive in an open loop and
// count only if they end before their deadline; a full pool refuses.
type Sized struct {
	Workers  int // 0: not configured
	Phases   []Phase
	TurnsMS  int // of the spin in a millisecond of computing
	Deadline time.Duration
	Settle   time.Duration // at the start of each phase
	Measure  time.Duration
	Seed     uint64
}

// Phase is a load: a rate of jobs that compute, then wait.
type Phase struct {
	PerSecond     float64
	Compute, Wait time.Duration
}
