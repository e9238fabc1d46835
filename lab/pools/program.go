package pools

import (
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
)

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

// Names of all contestants, in the order of the tables.
func Names() []string {
	return []string{Spillway, Channel, Semaphore, Errgroup, Ants, Pond, Conc, Gammazero, Tunny}
}

// What contestants can do. Tunny only calls; gammazero and conc cannot refuse; some
// start a goroutine for a job and queue none.
func Submitters() []string { return slices.DeleteFunc(Names(), is(Tunny)) }
func Refusers() []string   { return slices.DeleteFunc(Names(), is(Tunny, Conc, Gammazero)) }
func Callers() []string    { return []string{Spillway, Channel, Tunny, Pond} }
func Queues(name string) bool {
	return !is(Semaphore, Errgroup, Ants, Conc)(name)
}

func is(names ...string) func(string) bool {
	return func(s string) bool { return slices.Contains(names, s) }
}

// Idle is how long workers stay without a job, in the pools that retire them.
const Idle = 250 * time.Millisecond

// The roles of the program of the contestants: RoleBout takes a Bout and returns
// readings by entry and round, RoleMemory a Footprint and BytesOf, RoleBurst a Flood
// and FloodUsage, RoleSizing a Sized and a run for each phase.
const (
	RoleBout   = "pools-bout"
	RoleMemory = "pools-memory"
	RoleBurst  = "pools-burst"
	RoleSizing = "pools-sizing"
)

// spec starts a role of the program.
func (c Config) spec(role string, input any) contestant.Spec {
	return contestant.Spec{Program: "pools", Role: role, Input: input, MemoryCap: c.MemoryCap}
}

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
	Twin       bool // the second of an A/A pair
}

// Footprint asks for the memory of an idle worker and of a job that no worker has
// taken.
type Footprint struct {
	Contestant    string
	Workers, Jobs int
}

// BytesOf is the memory of each, in heap and stacks; -1 if there is none.
type BytesOf struct{ Worker, Job float64 }

// Flood is many jobs that wait, all at once.
type Flood struct {
	Contestant            string
	Jobs, Workers, Buffer int
	Work                  time.Duration
}

// Ideal is how long it takes if every worker is always busy.
func (f Flood) Ideal() time.Duration {
	return time.Duration((f.Jobs+f.Workers-1)/f.Workers) * f.Work
}

// FloodUsage is what it took.
type FloodUsage struct {
	Seconds, CPUSeconds float64
	PeakRSS             uint64
	PeakGoroutines      int
	Left                int // workers still there after the idle timeout
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
