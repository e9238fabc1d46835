package pools

import "time"

// The contestants.
const (
	Channel   = "channel"   // the bare channel: workers that range over a buffered one
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
	Submitters = []string{Spillway, Channel, Semaphore, Errgroup, Ants, Pond, Conc, Gammazero}
	Refusers   = []string{Spillway, Channel, Semaphore, Errgroup, Ants, Pond}
	Callers    = []string{Spillway, Channel, Tunny, Pond}
	Queuers    = []string{Spillway, Channel, Pond, Gammazero}
	flooded    = []string{Spillway, Channel, Ants, Pond, Gammazero} // keep their workers
	byHand     = []string{Channel}                                  // are no library
)

const (
	// Idle is how long workers stay without a job, in the pools that retire them.
	Idle = 250 * time.Millisecond

	// Buffer is the number of places in the queue of every contestant with a bounded one. It moves the
	// figures more than the number of workers.
	Buffer = 1024
)

// Roles of the program, with what they take and return.
const (
	RoleSubmit = "pools-submit" // Bouts of jobs handed over, in turns
	RoleRefuse = "pools-refuse" // Bouts of submissions refused by a full pool, in turns
	RoleCall   = "pools-call"   // Bouts of results waited for, in turns
	RoleMemory = "pools-memory" // a name; "worker_bytes" when idle, "job_bytes" of one that no worker has taken
	RoleBurst  = "pools-burst"  // Flood; "finish" of the ideal time, "cpu_seconds", "peak_rss", "peak_goroutines", "left" after the idle timeout
)

// Bout is a contestant with its task.
type Bout struct {
	Contestant         string
	Producers, Workers int
	Work               time.Duration // of each job; 0: none
}

// Flood is many jobs that wait, all at once.
type Flood struct {
	Contestant    string
	Jobs, Workers int
	Work          time.Duration
}

// Ideal is how long it takes if every worker is always busy.
func (f Flood) Ideal() time.Duration { return time.Duration((f.Jobs+f.Workers-1)/f.Workers) * f.Work }
